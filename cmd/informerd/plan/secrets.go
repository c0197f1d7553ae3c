package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cmd/informerd/config"
)

var (
	secrets = schema.GroupResource{Resource: "secrets"}
	// secretPaths hold what makes a Secret secret.
	secretPaths = []string{"data", "stringData"}
)

// copies are the annotations in which those who apply objects keep a second copy of the
// whole object: kubectl apply, kapp, Rancher's and Banzai's operators, and whoever else
// does as they do.
var copies = []string{
	"metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']",
	"metadata.annotations['kapp.k14s.io/original']",
	"metadata.annotations['kapp.k14s.io/original-diff']",
	"metadata.annotations['objectset.rio.cattle.io/applied']",
	"metadata.annotations['banzaicloud.com/last-applied']",
	rawjson.SecretCopies.String(),
}

// taken is what is dropped and redacted of the resource gr, which rule decides
// because of pattern.
//
// Secrets are redacted unless a rule that names them says otherwise; a rule that
// meets them by a glob can only redact more. Where their data goes, the
// annotations that repeat it go too.
func taken(rule config.Rule, pattern config.Pattern, gr schema.GroupResource) (drop, redact []string) {
	drop, redact = rule.Drop, rule.Redact
	if gr != secrets {
		return drop, redact
	}
	if _, named := pattern.Literal(); !named || redact == nil {
		redact = with(redact, secretPaths...)
	}
	if slices.ContainsFunc(slices.Concat(drop, redact), secret) {
		drop = with(drop, copies...)
	}
	return drop, redact
}

// secret tells whether a path is data or stringData, or in them.
func secret(path string) bool {
	return slices.ContainsFunc(secretPaths, func(outer string) bool {
		rest, ok := strings.CutPrefix(path, outer)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// with is list and what of more it does not hold yet. It never modifies list.
func with(list []string, more ...string) []string {
	all := slices.Clone(list)
	for _, m := range more {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}
