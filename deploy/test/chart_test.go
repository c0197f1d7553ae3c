package test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"
)

// given is the least for a chart that makes no certificate, which takes time.
const given = "tls: {mode: secret}\n"

func statefulSet(t *testing.T, all objects) *appsv1.StatefulSet {
	t.Helper()
	return get[*appsv1.StatefulSet](t, all, "StatefulSet/informerd/informerd")
}

// TestDefaults: whoever says nothing gets a pod that may do little, and keeps what it
// has.
func TestDefaults(t *testing.T) {
	all := installed.objects(t, "")
	sound(t, all, installed)
	set := statefulSet(t, all)
	pod := set.Spec.Template.Spec
	c := pod.Containers[0]
	security, own := pod.SecurityContext, c.SecurityContext
	if !ptr.Deref(security.RunAsNonRoot, false) || ptr.Deref(security.RunAsUser, 0) != 65532 || ptr.Deref(security.FSGroup, 0) != 65532 ||
		security.SeccompProfile == nil || security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod security is %+v", security)
	}
	if !ptr.Deref(own.ReadOnlyRootFilesystem, false) || ptr.Deref(own.AllowPrivilegeEscalation, true) || ptr.Deref(own.Privileged, false) ||
		len(own.Capabilities.Drop) != 1 || own.Capabilities.Drop[0] != "ALL" || len(own.Capabilities.Add) > 0 {
		t.Errorf("container security is %+v", own)
	}
	if len(set.Spec.VolumeClaimTemplates) != 1 || set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		t.Error("there is no volume for the snapshot, or it stays behind")
	}
	if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/livez" {
		t.Errorf("probes ask %s and %s", c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path)
	}
	if c.Image != "informerd:0.1.0" {
		t.Errorf("image is %s", c.Image)
	}
	config := configOf(t, all, set)
	if config.Authentication.Anonymous || config.Authorization.Mode != "review" || config.Log.Format != "json" || config.Resources != nil {
		t.Errorf("configuration is %+v", config)
	}
	account := get[*corev1.ServiceAccount](t, all, "ServiceAccount/informerd/informerd")
	if ptr.Deref(account.AutomountServiceAccountToken, true) || !ptr.Deref(pod.AutomountServiceAccountToken, false) {
		t.Error("the token is given to others than the pods, or not to them")
	}
	for key, role := range of[*rbacv1.ClusterRole](all) {
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				reviews := verb == "create" && (rule.Resources[0] == "tokenreviews" || rule.Resources[0] == "subjectaccessreviews")
				if verb != "get" && verb != "list" && verb != "watch" && !reviews || verb == "get" && rule.Resources[0] == "*" {
					t.Errorf("%s grants %s of %v", key, verb, rule.Resources)
				}
			}
		}
	}
}

// TestValues: each value does what it says, and whatever it is combined with is sound.
func TestValues(t *testing.T) {
	for _, test := range []struct {
		name, values string
		check        func(t *testing.T, all objects)
	}{
		{"memory only", "persistence: {enabled: false, size: 5Gi}", func(t *testing.T, all objects) {
			set := statefulSet(t, all)
			if len(set.Spec.VolumeClaimTemplates) != 0 {
				t.Error("a volume is claimed")
			}
			for _, v := range set.Spec.Template.Spec.Volumes {
				if v.Name == "data" && (v.EmptyDir == nil || v.EmptyDir.SizeLimit.String() != "5Gi") {
					t.Errorf("data is %+v", v)
				}
			}
		}},
		{"memory limit", "resources: {limits: {memory: 2Gi}}", wantEnv("GOMEMLIMIT", "1932735283")},
		{"memory limit with a fraction", "resources: {limits: {memory: 1.5Gi}}\ngoMemLimitPercent: 50", wantEnv("GOMEMLIMIT", "805306368")},
		{"memory limit in bytes", "resources: {limits: {memory: \"1000000000\"}}", wantEnv("GOMEMLIMIT", "900000000")},
		{"memory limit as a number", "resources: {limits: {memory: 1000000000}}", wantEnv("GOMEMLIMIT", "900000000")},
		{"no memory limit", "resources: {limits: {memory: null}}", wantEnv("GOMEMLIMIT", "")},
		{"left alone", "goMemLimitPercent: 0", wantEnv("GOMEMLIMIT", "")},
		{"environment", "extraEnv: [{name: A, value: b}]", wantEnv("A", "b")},
		{"names", "fullnameOverride: other\nrbac: {metricsReaders: [{kind: ServiceAccount, name: p, namespace: m}]}", func(t *testing.T, all objects) {
			get[*corev1.Service](t, all, "Service/informerd/other")
			b := get[*rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding/informerd-other-metrics")
			if len(b.Subjects) != 1 || b.Subjects[0].Name != "p" {
				t.Errorf("subjects are %v", b.Subjects)
			}
		}},
		{"digest", "image: {repository: r.io/x, digest: \"sha256:" + strings.Repeat("0", 64) + "\"}", func(t *testing.T, all objects) {
			if got := statefulSet(t, all).Spec.Template.Spec.Containers[0].Image; got != "r.io/x@sha256:"+strings.Repeat("0", 64) {
				t.Errorf("image is %s", got)
			}
		}},
		{"stale", "probes: {staleIsReady: true}", func(t *testing.T, all objects) {
			if got := statefulSet(t, all).Spec.Template.Spec.Containers[0].ReadinessProbe.HTTPGet.Path; got != "/readyz?stale=ok" {
				t.Errorf("path is %s", got)
			}
		}},
		{"configuration", "config: {syncs: 4, log: {format: text, level: debug}, resources: [{match: [pods]}]}", func(t *testing.T, all objects) {
			c := configOf(t, all, statefulSet(t, all))
			if c.Log.Format != "text" || len(c.Resources) != 1 || c.Listen != ":8443" {
				t.Errorf("configuration is %+v", c)
			}
		}},
		{"audit log", "audit: {stdout: true}\nconfig: {audit: {omit: [/metrics]}}", func(t *testing.T, all objects) {
			if c := configOf(t, all, statefulSet(t, all)); c.Audit.File != "-" || len(c.Audit.Omit) != 1 {
				t.Errorf("configuration is %+v", c.Audit)
			}
		}},
		{"audit log in a file", "config: {audit: {file: /var/lib/informerd/audit.log}}", func(t *testing.T, all objects) {
			if c := configOf(t, all, statefulSet(t, all)); c.Audit.File != "/var/lib/informerd/audit.log" {
				t.Errorf("configuration is %+v", c.Audit)
			}
		}},
		{"client certificates", "authentication: {clientCA: {configMap: cas, key: my.crt}, requestHeader: {secret: proxy, allowedNames: [front]}}",
			func(t *testing.T, all objects) {
				c := configOf(t, all, statefulSet(t, all))
				if c.Authentication.ClientCAFile != "/etc/informerd-client-ca/my.crt" || c.Authentication.RequestHeader.ClientCAFile != "/etc/informerd-request-header/ca.crt" {
					t.Errorf("configuration is %+v", c.Authentication)
				}
			}},
		{"keys", "persistence: {encryption: {secretName: informerd-keys, key: my-keys}}", func(t *testing.T, all objects) {
			set := statefulSet(t, all)
			if got := configOf(t, all, set).Snapshot.Encryption.KeyFile; got != "/etc/informerd-keys/my-keys" {
				t.Errorf("key file is %q", got)
			}
			for _, v := range set.Spec.Template.Spec.Volumes {
				if v.Name == "keys" && (v.Secret.SecretName != "informerd-keys" || *v.Secret.DefaultMode != 0o400) {
					t.Errorf("volume is %+v", v.Secret)
				}
			}
		}},
		{"rights", "rbac: {rules: [{apiGroups: [\"\"], resources: [pods], verbs: [list]}], namespaceRules: {a: [{apiGroups: [\"\"], resources: [secrets], verbs: [get]}]}}",
			func(t *testing.T, all objects) {
				if got := get[*rbacv1.ClusterRole](t, all, "ClusterRole/informerd").Rules; len(got) != 1 || got[0].Resources[0] != "pods" {
					t.Errorf("rules are %v", got)
				}
				get[*rbacv1.Role](t, all, "Role/a/informerd")
				if all["Role/kube-system/informerd"] != nil {
					t.Error("the shipped rules are granted as well")
				}
			}},
		{"no rights", "rbac: {create: false}\nserviceAccount: {create: false, name: theirs}", func(t *testing.T, all objects) {
			if n := len(of[*rbacv1.ClusterRole](all)) + len(of[*corev1.ServiceAccount](all)); n > 0 {
				t.Errorf("%d objects that were not wanted", n)
			}
			if got := statefulSet(t, all).Spec.Template.Spec.ServiceAccountName; got != "theirs" {
				t.Errorf("service account is %s", got)
			}
		}},
		{"network", "networkPolicy: {from: [{namespaceSelector: {}}], egress: {enabled: true, to: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [443]}}",
			func(t *testing.T, all objects) {
				p := get[*networkingv1.NetworkPolicy](t, all, "NetworkPolicy/informerd/informerd")
				if len(p.Spec.PolicyTypes) != 2 || len(p.Spec.Ingress[0].From) != 1 || len(p.Spec.Egress) != 2 || p.Spec.Egress[1].To[0].IPBlock.CIDR != "10.0.0.0/8" {
					t.Errorf("policy is %+v", p.Spec)
				}
			}},
		{"ingress", "ingress: {enabled: true, className: nginx, hosts: [a.example.com, b.example.com], tls: [{secretName: x, hosts: [a.example.com]}]}",
			func(t *testing.T, all objects) {
				if got := get[*networkingv1.Ingress](t, all, "Ingress/informerd/informerd").Spec.Rules; len(got) != 2 {
					t.Errorf("rules are %v", got)
				}
			}},
		{"load balancer", "service: {type: LoadBalancer, port: 8443, nodePort: 30443, ipFamilyPolicy: PreferDualStack}", func(t *testing.T, all objects) {
			s := get[*corev1.Service](t, all, "Service/informerd/informerd")
			if s.Spec.Ports[0].Port != 8443 || s.Spec.Ports[0].NodePort != 30443 {
				t.Errorf("ports are %v", s.Spec.Ports)
			}
		}},
		{"monitoring", "serviceMonitor: {enabled: true, labels: {release: x}, bearerTokenSecret: {name: tok}}\nprometheusRule: {enabled: true, alertLabels: {team: a}, disabled: [InformerdMended]}\ndashboard: {enabled: true, namespace: grafana}",
			func(t *testing.T, all objects) {
				m := get[*serviceMonitor](t, all, "ServiceMonitor/informerd/informerd")
				if m.Spec.Endpoints[0].Authorization.Credentials.Name != "tok" || m.Labels["release"] != "x" {
					t.Errorf("monitor is %+v", m)
				}
				for _, a := range get[*prometheusRule](t, all, "PrometheusRule/informerd/informerd").Spec.Groups[0].Rules {
					if a.Labels["team"] != "a" || a.Labels["severity"] == "" || a.Alert == "InformerdMended" {
						t.Errorf("alert is %+v", a)
					}
					if !strings.Contains(a.Annotations["description"], "{{ $labels.") && a.Alert != "InformerdNoSnapshot" {
						t.Errorf("%s: Helm has eaten what Prometheus is to fill in: %q", a.Alert, a.Annotations["description"])
					}
				}
				get[*corev1.ConfigMap](t, all, "ConfigMap/grafana/informerd-dashboard")
			}},
		{"own tlsConfig", "serviceMonitor: {enabled: true, tlsConfig: {insecureSkipVerify: true}}", func(t *testing.T, all objects) {
			m := get[*serviceMonitor](t, all, "ServiceMonitor/informerd/informerd")
			if e := m.Spec.Endpoints[0]; !e.TLSConfig.InsecureSkipVerify || e.TLSConfig.CA.Secret != nil || e.BearerTokenFile == "" {
				t.Errorf("endpoint is %+v", e)
			}
		}},
		{"leader election", "replicas: 2\nleaderElection: {enabled: true, leaseDuration: 15s}\nnetworkPolicy: {from: [{namespaceSelector: {}}], egress: {enabled: true}}",
			func(t *testing.T, all objects) {
				set := statefulSet(t, all)
				if r := configOf(t, all, set).Replicas; r.Lease != "informerd/informerd" || r.LeaseDuration != "15s" || r.ServerName != "informerd.informerd.svc" || r.CAFile != "/etc/informerd-replica-ca/ca.crt" {
					t.Errorf("configuration is %+v", r)
				}
				if got := flagOf(set.Spec.Template.Spec.Containers[0], "replica-url"); got != "https://$(POD_IP):8443" {
					t.Errorf("URL is %q", got)
				}
				p := get[*networkingv1.NetworkPolicy](t, all, "NetworkPolicy/informerd/informerd").Spec
				if len(p.Ingress) != 2 || len(p.Egress) != 3 || p.Ingress[1].From[0].PodSelector.MatchLabels["app.kubernetes.io/instance"] != "informerd" {
					t.Errorf("policy is %+v", p)
				}
				get[*rbacv1.RoleBinding](t, all, "RoleBinding/informerd/informerd-lease")
			}},
		{"leader election, own authority", "leaderElection: {enabled: true, url: \"https://[$(POD_IP)]:8443\", ca: {configMap: cas, key: my.crt}, serverName: x.example.com}",
			func(t *testing.T, all objects) {
				if r := configOf(t, all, statefulSet(t, all)).Replicas; r.ServerName != "x.example.com" || r.CAFile != "/etc/informerd-replica-ca/my.crt" {
					t.Errorf("configuration is %+v", r)
				}
			}},
		{"database", "config: {snapshot: {postgres: {url: \"postgres://db.example.com/informerd\", passwordFile: /pw/password}}}\nextraVolumes: [{name: pw, secret: {secretName: pw}}]\nextraVolumeMounts: [{name: pw, mountPath: /pw}]",
			func(t *testing.T, all objects) {
				set := statefulSet(t, all)
				if c := configOf(t, all, set); c.Snapshot.Path != "" || len(set.Spec.VolumeClaimTemplates) != 0 {
					t.Errorf("snapshot is %+v, claims are %v", c.Snapshot, set.Spec.VolumeClaimTemplates)
				}
			}},
		{"cert-manager", "tls: {mode: certManager, dnsNames: [x.example.com], certManager: {issuerRef: {name: ca, kind: ClusterIssuer}}}", func(t *testing.T, all objects) {
			c := get[*certificate](t, all, "Certificate/informerd/informerd")
			if c.Spec.SecretName != "informerd-tls" || c.Spec.IssuerRef.Kind != "ClusterIssuer" || !strings.Contains(fmt.Sprint(c.Spec.DNSNames), "x.example.com") {
				t.Errorf("certificate is %+v", c.Spec)
			}
		}},
		{"placement", "nodeSelector: {a: b}\ntolerations: [{operator: Exists}]\naffinity: {nodeAffinity: {}}\npriorityClassName: high\ntopologySpreadConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]\nreplicas: 3",
			func(t *testing.T, all objects) {
				set := statefulSet(t, all)
				if *set.Spec.Replicas != 3 || set.Spec.Template.Spec.TopologySpreadConstraints[0].MaxSkew != 2 {
					t.Errorf("spec is %+v", set.Spec)
				}
			}},
		{"more volumes", "extraVolumes: [{name: k, secret: {secretName: k}}]\nextraVolumeMounts: [{name: k, mountPath: /k}]\nimagePullSecrets: [{name: reg}]\npodLabels: {x: z}\npodAnnotations: {x: z}\ncommonLabels: {team: a}", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			values := test.values
			if !strings.Contains(values, "tls: {mode") {
				values = given + values
			}
			all := installed.objects(t, values)
			sound(t, all, installed)
			if test.check != nil {
				test.check(t, all)
			}
		})
	}
}

func wantEnv(name, value string) func(*testing.T, objects) {
	return func(t *testing.T, all objects) {
		t.Helper()
		got := ""
		for _, e := range statefulSet(t, all).Spec.Template.Spec.Containers[0].Env {
			if e.Name == name {
				got = e.Value
			}
		}
		if got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

// TestCombinations: values chosen at random go together.
func TestCombinations(t *testing.T) {
	choices := [][]string{
		{"", "persistence: {enabled: false}", "persistence: {encryption: {secretName: informerd-keys}}", "persistence: {storageClassName: fast, accessModes: [ReadWriteOncePod], annotations: {a: b}}"},
		{"", "replicas: 0", "replicas: 3"},
		{"", "leaderElection: {enabled: true}", "leaderElection: {enabled: true, ca: {secret: other, key: all.crt}}"},
		{"", "resources: {}", "resources: {limits: {cpu: 1, memory: 512Mi}}"},
		{"", "extraEnv: [{name: HTTPS_PROXY, value: x}]"},
		{"", "serviceMonitor: {enabled: true, namespace: m}", "serviceMonitor: {enabled: true, relabelings: [{targetLabel: a, replacement: b}]}"},
		{"", "prometheusRule: {enabled: true, namespace: m, labels: {a: b}}"},
		{"", "dashboard: {enabled: true, annotations: {folder: x}}"},
		{"", "ingress: {enabled: true, hosts: [x.example.com], annotations: {a: b}}"},
		{"", "networkPolicy: {enabled: false}", "networkPolicy: {egress: {enabled: true}}"},
		{"", "podDisruptionBudget: {enabled: false}", "podDisruptionBudget: {maxUnavailable: 50%}"},
		{"", "authentication: {anonymous: true}", "authentication: {clientCA: {secret: s}}", "authentication: {requestHeader: {configMap: c}}",
			"authentication: {tokenReview: {audiences: [a, b], cacheTTL: 1m}}"},
		{"", "authorization: {mode: rbac}"},
		{"", "service: {type: NodePort}", "service: {annotations: {a: b}, labels: {c: d}}"},
		{"", "serviceAccount: {annotations: {a: b}, name: sa}", "serviceAccount: {create: false}"},
		{"", "rbac: {create: false}", "rbac: {metricsReaders: [{kind: Group, name: g, apiGroup: rbac.authorization.k8s.io}]}"},
		{"", "config: {kubernetes: {reads: consistent}}", "config: {snapshot: {interval: 5s}}"},
		{"", "nameOverride: replica", "fullnameOverride: " + strings.Repeat("long-", 20) + "name"},
	}
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 120 {
		r := []install{installed, {name: "prod", namespace: "platform"}, {name: strings.Repeat("r", 53), namespace: strings.Repeat("n", 63)}}[n%3]
		values := []string{"tls: {mode: secret}"}
		for _, c := range choices {
			if one := c[random.IntN(len(c))]; one != "" {
				values = append(values, one)
			}
		}
		text := strings.Join(values, "\n")
		sound(t, r.objects(t, text), r)
		if t.Failed() {
			t.Fatalf("with the values\n%s", text)
		}
	}
}

// TestRestarts: what informerd reads while it runs restarts no pod, and what it does
// not read does.
func TestRestarts(t *testing.T) {
	sum := func(values string) string {
		return statefulSet(t, installed.objects(t, given+values)).Spec.Template.Annotations["checksum/config"]
	}
	before := sum("")
	for values, restarts := range map[string]bool{
		"config: {resources: [{match: [pods]}]}":        false,
		"config: {kubernetes: {reads: consistent}}":     false,
		"config: {references: [], search: {texts: {}}}": false,
		"config: {syncs: 4}":                            true,
		"config: {clusters: [{name: a}]}":               true,
		"authentication: {anonymous: true}":             true,
		"persistence: {encryption: {secretName: keys}}": true,
		"replicas: 2":                     false,
		"leaderElection: {enabled: true}": true,
	} {
		if got := sum(values) != before; got != restarts {
			t.Errorf("%s: restarts %v, want %v", values, got, restarts)
		}
	}
}

// TestMistakes: a value that is wrong is refused with its name.
func TestMistakes(t *testing.T) {
	for values, want := range map[string]string{
		"replcas: 2":    "replcas",
		"replicas: two": "replicas",
		"replicas: -1":  "replicas",
		"leaderElection: {enabled: true, leaseDuration: 8}":                                                      "leaseDuration",
		"leaderElection: {enabled: true, url: \"http://$(POD_IP)\"}":                                             "url",
		"leaderElection: {ca: {configMap: a, secret: b}}":                                                        "ca",
		"config: {replicas: {url: \"https://10.0.0.1\"}}":                                                        "leaderElection",
		"leaderElection: {enabled: true}\nconfig: {handlers: [{name: a}]}":                                       "config.handlers",
		"persistence: {encryption: {secretName: k}}\nconfig: {snapshot: {postgres: {url: \"postgres://db/x\"}}}": "persistence.encryption",
		"image: {repo: x}":                                      "repo",
		"image: {digest: abc}":                                  "digest",
		"image: {repository: \"\"}":                             "repository",
		"tls: {mode: none}":                                     "mode",
		"authorization: {mode: webhook}":                        "mode",
		"authentication: {tokenReview: {cacheTTL: 10}}":         "cacheTTL",
		"authentication: {clientCA: {configMap: a, secret: b}}": "clientCA",
		"persistence: {accessModes: [ReadWriteMany]}":           "accessModes",
		"persistence: {size: big}":                              "size",
		"service: {port: 0}":                                    "port",
		"goMemLimitPercent: 120":                                "goMemLimitPercent",
		"podDisruptionBudget: {maxUnavailable: most}":           "maxUnavailable",
		"rbac: {rules: [{apiGroups: [\"\"], verb: [get]}]}":     "rules",
		"serviceMonitor: {interval: often}":                     "interval",
		"tls: {mode: certManager}":                              "tls.certManager.issuerRef.name",
		"ingress: {enabled: true}":                              "ingress.hosts",
		"config: {listen: \"0.0.0.0:80\"}":                      "config.listen",
		"config: {authentication: {anonymous: true}}":           "config.authentication",
		"config: {snapshot: {path: /x}}":                        "config.snapshot.path",
		"config: {snapshot: {encryption: {keyFile: /x}}}":       "config.snapshot.encryption",
		"persistence: {encryption: {keyFile: /x}}":              "keyFile",
		"audit: {stdout: true}\nconfig: {audit: {file: /x}}":    "config.audit.file",
		"audit: {stdout: maybe}":                                "stdout",
		"resources: {limits: {memory: lots}}":                   "resources.limits.memory",
	} {
		if !strings.Contains(values, "tls:") {
			values = given + values
		}
		if _, err := installed.render(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that names %s", values, err, want)
		}
	}
}
