package kubeapi

import (
	"regexp"
	"slices"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// The API server prints whole objects, so its rows may show what the
// configuration takes out of them. It is asked for rows only where that cannot
// be.

// mayPrint reports whether the rows of the API server are sure to show nothing
// that spec drops or redacts. What columns the definition of a custom resource
// has, or an aggregated API server, is anybody's guess.
func mayPrint(spec cache.Spec) bool {
	unprinted := []*regexp.Regexp{neverPrinted}
	known := slices.Contains(builtInGroups, spec.GVR.Group) && spec.CRDUID == "" && !spec.Aggregated
	if known {
		unprinted = append(unprinted, notPrinted)
		if !slices.Contains(printAnnotations, spec.Name()) {
			unprinted = append(unprinted, annotations)
		}
	}
	if !within(spec.Drop, unprinted) {
		return false
	}
	if known && slices.Contains(printCounts, spec.Name()) {
		unprinted = append(unprinted, counted)
	}
	return within(spec.Redact, unprinted)
}

// within reports whether each of paths is at or below one that is not printed.
func within(paths []string, unprinted []*regexp.Regexp) bool {
	for _, text := range paths {
		path, err := rawjson.ParsePath(text)
		if err != nil || !slices.ContainsFunc(unprinted, func(u *regexp.Regexp) bool { return u.MatchString(path.String()) }) {
			return false
		}
	}
	return true
}

var (
	// neverPrinted has no place in any table worth the name.
	neverPrinted = regexp.MustCompile(`^metadata\.managedFields` + orBelow)
	// notPrinted is what no printer of the API server reads
	// (pkg/printers/internalversion/printers.go), of what is worth taking out.
	notPrinted = regexp.MustCompile(`^(?:status\.images|metadata\.annotations\['kubectl\.kubernetes\.io/last-applied-configuration'\]` +
		`|spec\.(?:(?:jobTemplate\.spec\.)?template\.spec\.)?(?:initContainers|containers|ephemeralContainers)\[[0-9*]+\]\.(?:env|envFrom|args|command))` + orBelow)
	annotations = regexp.MustCompile(`^metadata\.annotations` + orBelow)
	// counted is of what printers show the number of keys, which redacting
	// leaves as it is.
	counted = regexp.MustCompile(`^(?:data|stringData|binaryData)` + orBelow)
)

const orBelow = `(?:$|[.\[])`

// printAnnotations are the resources whose rows show annotations: a class, or
// that it is the default one.
var printAnnotations = []string{
	"persistentvolumes", "persistentvolumeclaims", "storageclasses.storage.k8s.io",
	"volumeattributesclasses.storage.k8s.io", "ingressclasses.networking.k8s.io", "ingresses.networking.k8s.io",
}

// printCounts are the resources whose rows show how many data there are.
var printCounts = []string{"configmaps", "secrets"}

// builtInGroups are those that the API server itself prints. One that is missing
// here is taken for custom resources.
var builtInGroups = []string{
	"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "autoscaling", "batch",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions",
	"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy",
	"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}
