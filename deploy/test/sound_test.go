package test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// sound holds objects to each other: whatever names another names one that is there.
func sound(t *testing.T, all objects, r install) {
	t.Helper()
	sets := of[*appsv1.StatefulSet](all)
	if len(sets) != 1 {
		t.Fatalf("%d StatefulSets, want one", len(sets))
	}
	set := slices.Collect(maps.Values(sets))[0]
	named(t, all)
	selected(t, all, set)
	mounted(t, all, set)
	reached(t, all, set)
	bound(t, all, set, r)
	configured(t, all, set)
}

// named: names and labels are such as the API server takes.
func named(t *testing.T, all objects) {
	t.Helper()
	for key, obj := range all {
		m, err := meta.Accessor(obj)
		if err != nil {
			t.Fatal(err)
		}
		if bad := validation.IsDNS1123Subdomain(m.GetName()); len(bad) > 0 {
			t.Errorf("%s: bad name: %v", key, bad)
		}
		if _, service := obj.(*corev1.Service); service && len(validation.IsDNS1035Label(m.GetName())) > 0 {
			t.Errorf("%s: bad name of a Service", key)
		}
		checkLabels(t, key, m.GetLabels())
		if m.GetLabels()["app.kubernetes.io/name"] == "" {
			t.Errorf("%s lacks the labels of the chart", key)
		}
	}
}

func checkLabels(t *testing.T, key string, all map[string]string) {
	t.Helper()
	for name, value := range all {
		if bad := slices.Concat(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)); len(bad) > 0 {
			t.Errorf("%s: bad label %s=%s: %v", key, name, value, bad)
		}
	}
}

// selected: whatever selects pods selects those of the StatefulSet.
func selected(t *testing.T, all objects, set *appsv1.StatefulSet) {
	t.Helper()
	pod := labels.Set(set.Spec.Template.Labels)
	checkLabels(t, "pods", pod)
	selects := func(key string, s *metav1.LabelSelector) {
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil || selector.Empty() || !selector.Matches(pod) {
			t.Errorf("%s does not select the pods: %v %v", key, selector, err)
		}
	}
	selects("StatefulSet", set.Spec.Selector)
	services := of[*corev1.Service](all)
	for key, s := range services {
		selects(key, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
	}
	for key, b := range of[*policyv1.PodDisruptionBudget](all) {
		selects(key, b.Spec.Selector)
	}
	for key, p := range of[*networkingv1.NetworkPolicy](all) {
		selects(key, &p.Spec.PodSelector)
	}
	if s := services["Service/"+set.Namespace+"/"+set.Spec.ServiceName]; s == nil || s.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("the StatefulSet's service %s is not there, or is not headless", set.Spec.ServiceName)
	}
	for key, m := range of[*serviceMonitor](all) {
		selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, s := range services {
			if selector.Matches(labels.Set(s.Labels)) && slices.Contains(m.Spec.NamespaceSelector.MatchNames, s.Namespace) {
				found = append(found, s.Name)
			}
		}
		if !slices.Equal(found, []string{set.Name}) {
			t.Errorf("%s selects the services %v: each pod has to be scraped once", key, found)
		}
	}
}

// mounted: every mount has its volume, and every volume is mounted.
func mounted(t *testing.T, all objects, set *appsv1.StatefulSet) {
	t.Helper()
	volumes := map[string]bool{}
	for _, v := range set.Spec.Template.Spec.Volumes {
		if volumes[v.Name] {
			t.Errorf("volume %s is there twice", v.Name)
		}
		volumes[v.Name] = true
		if v.ConfigMap != nil && v.Name == "config" && all["ConfigMap/"+set.Namespace+"/"+v.ConfigMap.Name] == nil {
			t.Errorf("the ConfigMap %s is not there", v.ConfigMap.Name)
		}
	}
	for _, c := range set.Spec.VolumeClaimTemplates {
		if volumes[c.Name] {
			t.Errorf("volume %s is there twice", c.Name)
		}
		volumes[c.Name] = true
	}
	for _, m := range set.Spec.Template.Spec.Containers[0].VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("mount %s has no volume", m.Name)
		}
		delete(volumes, m.Name)
	}
	if len(volumes) > 0 {
		t.Errorf("volumes %v are not mounted", slices.Sorted(maps.Keys(volumes)))
	}
}

// reached: ports that are named are there.
func reached(t *testing.T, all objects, set *appsv1.StatefulSet) {
	t.Helper()
	c := set.Spec.Template.Spec.Containers[0]
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	has := func(key string, port intstr.IntOrString) {
		if _, ok := ports[port.StrVal]; !ok {
			t.Errorf("%s: there is no port %s", key, port.String())
		}
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		has("probe", probe.HTTPGet.Port)
		if probe.HTTPGet.Scheme != corev1.URISchemeHTTPS {
			t.Errorf("a probe asks by %s", probe.HTTPGet.Scheme)
		}
	}
	for key, s := range of[*corev1.Service](all) {
		for _, p := range s.Spec.Ports {
			has(key, p.TargetPort)
		}
	}
	for key, p := range of[*networkingv1.NetworkPolicy](all) {
		for _, in := range p.Spec.Ingress {
			for _, port := range in.Ports {
				has(key, *port.Port)
			}
		}
	}
	for key, in := range of[*networkingv1.Ingress](all) {
		for _, rule := range in.Spec.Rules {
			for _, p := range rule.HTTP.Paths {
				s := get[*corev1.Service](t, all, "Service/"+in.Namespace+"/"+p.Backend.Service.Name)
				if !slices.ContainsFunc(s.Spec.Ports, func(one corev1.ServicePort) bool { return one.Name == p.Backend.Service.Port.Name }) {
					t.Errorf("%s: the Service has no port %s", key, p.Backend.Service.Port.Name)
				}
			}
		}
	}
	if config := configOf(t, all, set); config.Listen != ":"+strconv.Itoa(int(ports["https"])) {
		t.Errorf("informerd listens on %s, and the port is %d", config.Listen, ports["https"])
	}
}

// bound: the pods' service account has the roles, and nobody else.
func bound(t *testing.T, all objects, set *appsv1.StatefulSet, r install) {
	t.Helper()
	account := set.Spec.Template.Spec.ServiceAccountName
	want := rbacv1.Subject{Kind: "ServiceAccount", Name: account, Namespace: r.namespace}
	check := func(key, role string, subjects []rbacv1.Subject) {
		if all[role] == nil {
			t.Errorf("%s: there is no %s", key, role)
		}
		if strings.HasSuffix(key, "-metrics") {
			return
		}
		if !slices.Equal(subjects, []rbacv1.Subject{want}) {
			t.Errorf("%s is for %v, want %v", key, subjects, want)
		}
	}
	bindings := 0
	for key, b := range of[*rbacv1.ClusterRoleBinding](all) {
		check(key, "ClusterRole/"+b.RoleRef.Name, b.Subjects)
		bindings++
	}
	for key, b := range of[*rbacv1.RoleBinding](all) {
		check(key, "Role/"+b.Namespace+"/"+b.RoleRef.Name, b.Subjects)
		bindings++
	}
	if roles := len(of[*rbacv1.ClusterRole](all)) + len(of[*rbacv1.Role](all)); roles != bindings {
		t.Errorf("%d roles and %d bindings", roles, bindings)
	}
	for key, a := range of[*corev1.ServiceAccount](all) {
		if a.Name != account {
			t.Errorf("%s is not that of the pods, %s", key, account)
		}
	}
}

// config is what the chart sets of config.yaml.
type config struct {
	Listen   string
	TLS      struct{ CertFile, KeyFile string }
	Snapshot struct {
		Path       string
		Encryption struct{ KeyFile string }
	}
	Authentication struct {
		Anonymous     bool
		ClientCAFile  string
		RequestHeader struct{ ClientCAFile string }
	}
	Authorization struct{ Mode string }
	Audit         struct {
		File string
		Omit []string
	}
	Log       struct{ Format string }
	Replicas  struct{ Lease, LeaseDuration, CAFile, ServerName string }
	Resources []map[string]any
}

func configText(t *testing.T, all objects, set *appsv1.StatefulSet) string {
	t.Helper()
	return get[*corev1.ConfigMap](t, all, "ConfigMap/"+set.Namespace+"/"+set.Name).Data["config.yaml"]
}

func configOf(t *testing.T, all objects, set *appsv1.StatefulSet) (c config) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(configText(t, all, set)), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// configured: files that config.yaml names are where a volume is mounted, and informerd
// takes it.
func configured(t *testing.T, all objects, set *appsv1.StatefulSet) {
	t.Helper()
	c := configOf(t, all, set)
	pod := set.Spec.Template.Spec
	mounts := map[string]corev1.VolumeMount{}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounts[m.MountPath] = m
	}
	for _, file := range []string{c.TLS.CertFile, c.TLS.KeyFile, c.Authentication.ClientCAFile, c.Authentication.RequestHeader.ClientCAFile, c.Snapshot.Encryption.KeyFile, c.Replicas.CAFile} {
		if file == "" {
			continue
		}
		m, ok := mounts[path.Dir(file)]
		if !ok || !m.ReadOnly {
			t.Errorf("%s is on no volume that is mounted to be read", file)
			continue
		}
		if !slices.Contains(filesOf(pod.Volumes, m.Name), path.Base(file)) {
			t.Errorf("the volume %s has no %s", m.Name, path.Base(file))
		}
	}
	if m, ok := mounts[path.Dir(c.Snapshot.Path)]; c.Snapshot.Path != "" && (!ok || m.ReadOnly) {
		t.Errorf("the snapshot %s is on no volume that may be written", c.Snapshot.Path)
	}
	if m, ok := mounts[path.Dir(flagOf(pod.Containers[0], "config"))]; !ok || m.Name != "config" {
		t.Errorf("%s is not where the ConfigMap is mounted", pod.Containers[0].Args)
	}
	taken(t, configText(t, all, set))
	following(t, all, set, c)
}

// following: replicas that follow one another have a Lease, which they may write and nobody
// else, and say where they are.
func following(t *testing.T, all objects, set *appsv1.StatefulSet, c config) {
	t.Helper()
	url := flagOf(set.Spec.Template.Spec.Containers[0], "replica-url")
	if (url != "") != (c.Replicas.Lease != "") {
		t.Errorf("the flag --replica-url is %q, and the section replicas %+v", url, c.Replicas)
	}
	if url == "" {
		return
	}
	namespace, name, _ := strings.Cut(c.Replicas.Lease, "/")
	if namespace != set.Namespace || name != set.Name {
		t.Errorf("the Lease is %s", c.Replicas.Lease)
	}
	var written []string
	creates := false
	for _, role := range of[*rbacv1.Role](all) {
		for _, rule := range role.Rules {
			if role.Namespace == namespace && slices.Equal(rule.Resources, []string{"leases"}) && slices.Equal(rule.ResourceNames, []string{name}) {
				written = append(written, rule.Verbs...)
			}
			creates = creates || role.Namespace == namespace && slices.Equal(rule.Resources, []string{"leases"}) && len(rule.ResourceNames) == 0 && slices.Equal(rule.Verbs, []string{"create"})
		}
	}
	if roles := of[*rbacv1.Role](all); len(roles) > 0 && (!creates || !slices.Equal(written, []string{"get", "update"})) {
		t.Errorf("of the Lease they may %v, and create it: %v", written, creates)
	}
	expands := false
	for _, e := range set.Spec.Template.Spec.Containers[0].Env {
		expands = expands || e.Name == "POD_IP" && e.ValueFrom.FieldRef.FieldPath == "status.podIP"
	}
	if strings.Contains(url, "$(POD_IP)") && !expands {
		t.Errorf("nothing says what POD_IP of %s is", url)
	}
}

// flagOf is the value of a flag of a container, "" if it is not given.
func flagOf(c corev1.Container, name string) string {
	for _, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

func filesOf(volumes []corev1.Volume, name string) (files []string) {
	for _, v := range volumes {
		if v.Name != name {
			continue
		}
		if v.Secret != nil {
			for _, i := range v.Secret.Items {
				files = append(files, i.Path)
			}
		}
		if v.ConfigMap != nil {
			for _, i := range v.ConfigMap.Items {
				files = append(files, i.Path)
			}
		}
	}
	return files
}

// checked are the configurations that informerd has been asked about.
var checked = map[string]bool{}

// taken has informerd itself read a configuration.
func taken(t *testing.T, text string) {
	t.Helper()
	if checked[text] {
		return
	}
	checked[text] = true
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := program(t, "check", "--offline", file); err != nil {
		t.Errorf("informerd does not take its configuration: %v\n%s\n%s", err, stderr, text)
	}
}
