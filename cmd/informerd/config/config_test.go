package config_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/server/kubeapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The built-in default and the shipped file must say the same.
func TestShipped(t *testing.T) {
	data, err := config.Read("../../../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := config.Parse("config.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	sameButLine := []cmp.Option{cmpopts.IgnoreFields(config.Rule{}, "Line"), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(config.Default(), shipped, sameButLine...); diff != "" {
		t.Errorf("config.yaml differs from Default (-default +config.yaml):\n%s", diff)
	}
	// Empty and nil redact differ, which EquateEmpty does not see.
	for i, rule := range shipped.Resources {
		if (rule.Redact == nil) != (config.Default().Resources[i].Redact == nil) {
			t.Errorf("resources[%d].redact: nil in one of config.yaml and Default only", i)
		}
	}
}

// Every key there is must be shown in the shipped file.
func TestShippedIsComplete(t *testing.T) {
	data, err := os.ReadFile("../../../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = config.Parse("f", []byte("x: 1\naudit: {x: 1}\nclusters: [{x: 1}]\nsnapshot: {x: 1, encryption: {x: 1}}\nverify: {x: 1}\nkubernetes: {x: 1}\nlog: {x: 1}\nreferences: [{x: 1}]\nsearch: {x: 1}\nresources: [{x: 1}]\nhandlers: [{x: 1, retry: {x: 1}, as: {x: 1}, webhook: {x: 1, tls: {x: 1}}}, {nats: {x: 1, tls: {x: 1}}}, {kafka: {x: 1, tls: {x: 1}}}]"))
	for _, e := range errorsOf(t, err) {
		_, known, ok := strings.Cut(e.Message, "known are ")
		if !ok {
			continue
		}
		for key := range strings.SplitSeq(known, ", ") {
			if !strings.Contains(string(data), key) {
				t.Errorf("config.yaml does not show %s", key)
			}
		}
	}
}

func TestNothingGiven(t *testing.T) {
	for name, text := range map[string]string{
		"empty":       "",
		"comment":     "# nothing\n",
		"null":        "~",
		"all empty":   "listen:\nclusters:\nsnapshot:\nverify:\nsyncs:\nkubernetes:\nlog:\nresources:\n",
		"no clusters": "clusters: []",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := config.Parse("f", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(config.Default(), got); diff != "" {
				t.Errorf("Parse() differs from Default (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParse(t *testing.T) {
	got, err := config.Parse("f", []byte(`
listen: localhost:9090
clusters:
- {name: east, kubeconfig: /etc/east, context: admin, namespaces: [shop, web-1]}
- name: west
- {folder: /etc/clusters, namespaces: [shop]}
snapshot: {path: "", interval: 250ms, encryption: {keyFile: /etc/keys}}
verify: {interval: 0}
syncs: 3
kubernetes: {reads: consistent, passthrough: reads}
log: {level: debug, format: json}
resources:
- match: &core [pods, nodes.v1, "conf*maps"]
  labelSelector: app in (a, b),!x
  fieldSelector: status.phase!=Failed
  shardSelector: "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
  namespaces: ["shop-*", kube-system]
  indexes: {node: .spec.nodeName, app: "metadata.annotations['a.io/b']"}
  drop: []
  redact: ["{.spec.token}"]
- match: ["*.v1beta1.cert-manager.io"]
  watch: false
  redact: []
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &config.Config{
		Listen: "localhost:9090",
		Clusters: []config.Cluster{
			{Name: "east", Kubeconfig: "/etc/east", Context: "admin", Namespaces: []string{"shop", "web-1"}},
			{Name: "west"},
		},
		Folders:       []config.Folder{{Path: "/etc/clusters", Namespaces: []string{"shop"}}},
		Snapshot:      config.Snapshot{Interval: 250 * time.Millisecond, KeyFile: "/etc/keys"},
		Syncs:         3,
		Authorization: config.Authorization{Mode: config.Review},
		Audit:         config.Default().Audit,
		Kubernetes:    kubeapi.Modes{Reads: kubeapi.Consistent, Passthrough: kubeapi.PassReads, Lists: kubeapi.Strict},
		Log:           config.Log{Level: "debug", Format: "json"},
		Resources: []config.Rule{
			{
				Match:         patterns(t, "pods", "nodes.v1", "conf*maps"),
				Watch:         true,
				LabelSelector: "app in (a, b),!x",
				FieldSelector: "status.phase!=Failed",
				ShardSelector: "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
				Namespaces:    []string{"shop-*", "kube-system"},
				Indexes:       map[string]string{"node": "spec.nodeName", "app": "metadata.annotations['a.io/b']"},
				Drop:          []string{},
				Redact:        []string{"spec.token"},
				Line:          13,
			},
			{
				Match:  patterns(t, "*.v1beta1.cert-manager.io"),
				Drop:   []string{"metadata.managedFields"},
				Redact: []string{},
				Line:   21,
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse() (-want +got):\n%s", diff)
	}
}

// TestColumns: sets of paths are as /v1/resources/{resource}/columns has them, whatever may be
// dropped.
func TestColumns(t *testing.T) {
	got, err := config.Parse("f", []byte(`resources: [{match: [pods], columns: [[metadata.namespace, "spec.containers[*].image"], ["metadata.labels['app']", .kind]]}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"metadata.namespace", "spec.containers[*].image"}, {"metadata.labels.app", "kind"}}
	if diff := cmp.Diff(want, got.Resources[0].Columns.Pinned); diff != "" {
		t.Errorf("pinned (-want +got):\n%s", diff)
	}
}

func TestMistakes(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"unknown key", "lisen: x", []string{`f:1:1: lisen: unknown key, did you mean "listen"?`}},
		{"unknown key, nothing near", "a:\nsnapshot:\n  zzzzzzzz: 1", []string{
			`f:1:1: a: unknown key, known are audit, authentication, authorization, clusters, handlers, kubernetes, listen, log, pprof, prepare, references, replicas, resources, search, snapshot, syncs, tls, verify`,
			`f:3:3: snapshot.zzzzzzzz: unknown key, known are encryption, interval, path, postgres`,
		}},
		{"case", "resources:\n- match: [pods]\n  labelselector: a=b", []string{
			`f:3:3: resources[0].labelselector: unknown key, did you mean "labelSelector"?`,
		}},
		{"twice", "syncs: 1\nlisten: localhost:1\nsyncs: 2", []string{`f:3:1: syncs: given twice, first on line 1`}},
		{"top is a list", "- a", []string{`f:1:1: is a list, needs keys and values`}},
		{"top is text", "hello", []string{`f:1:1: is "hello", needs keys and values`}},
		{"two documents", "syncs: 1\n---\nsyncs: 2", []string{`f:2:1: a second document starts here: one file is one configuration`}},
		{"not YAML", "listen: [\nsyncs", []string{`f:2: not YAML: did not find expected ',' or ']'`}},
		{"no mapping", "snapshot: on\nlog: []\nverify: 1h", []string{
			`f:1:11: snapshot: is "on", needs keys and values`,
			`f:2:6: log: is a list, needs keys and values`,
			`f:3:9: verify: is "1h", needs keys and values`,
		}},
		{"key is no word", "? [a]\n: 1", []string{`f:1:3: a key is a list, needs a word`}},
		{"merge", "log: &l {level: info}\nsnapshot:\n  <<: *l", []string{
			`f:3:3: snapshot: the merge key "<<" is not supported: write the keys out`,
		}},
		{"listen", "listen: 8080", []string{`f:1:9: listen: is the number 8080, needs text: put it in quotes`}},
		{"tls without key", "tls: {certFile: a}", []string{`f:1:6: tls: needs both certFile and keyFile, or none for plain HTTP`}},
		{"tls without certificate", "tls:\n  keyFile: a", []string{`f:2:3: tls: needs both certFile and keyFile, or none for plain HTTP`}},
		{"tls misspelt", "tls: {certfile: a}", []string{`f:1:7: tls.certfile: unknown key, did you mean "certFile"?`}},
		{"tls of numbers", "tls: {certFile: 1, keyFile: a}", []string{`f:1:6: tls: needs both certFile and keyFile, or none for plain HTTP`, `f:1:17: tls.certFile: is the number 1, needs text: put it in quotes`}},
		{"listen without port", "listen: localhost", []string{`f:1:9: listen: listen address "localhost": want host:port: address localhost: missing port in address`}},
		{"listen with bad port", "listen: a:99999", []string{`f:1:9: listen: listen address "a:99999": port "99999" is not a number from 0 to 65535`}},
		{"listen beyond loopback", "listen: 0.0.0.0:80", []string{`f:1:9: listen: listen address "0.0.0.0:80" is not a loopback address, and informerd has no authentication configured: whoever reaches it could read everything it holds; configure authentication, or listen on 127.0.0.1:80 and put an authenticating proxy in front of it on the same machine`}},
		{"encryption without keys", "snapshot:\n  encryption: {}", []string{
			`f:2:15: snapshot.encryption: needs keyFile; leave encryption out for a snapshot that is not encrypted`,
		}},
		{"encryption without a name", "snapshot:\n  encryption: {keyFile: ''}", []string{
			`f:2:15: snapshot.encryption: needs keyFile; leave encryption out for a snapshot that is not encrypted`,
		}},
		{"encryption with a key in its place", "snapshot:\n  encryption: {key: x}", []string{
			`f:2:16: snapshot.encryption.key: unknown key, known are keyFile`,
		}},
		{"duration", "snapshot:\n  interval: 1x", []string{`f:2:13: snapshot.interval: bad duration "1x": write one such as 500ms, 1s, 5m or 1h`}},
		{"duration without unit", "snapshot: {interval: 30}", []string{`f:1:22: snapshot.interval: bad duration "30": write one such as 500ms, 1s, 5m or 1h`}},
		{"duration out of range", "snapshot: {interval: 0s}\nverify: {interval: 1s}", []string{
			`f:1:22: snapshot.interval: duration 0s is out of range: from 100ms to 1h`,
			`f:2:20: verify.interval: duration 1s is out of range: from 1m to 168h`,
		}},
		{"number", "syncs: many", []string{`f:1:8: syncs: is "many", needs a number from 1 to 256`}},
		{"number out of range", "syncs: 0", []string{`f:1:8: syncs: 0 is out of range: from 1 to 256`}},
		{"choice", "log: {level: inf, format: xml}", []string{
			`f:1:14: log.level: bad value "inf": did you mean "info"?`,
			`f:1:27: log.format: bad value "xml": known are text, json`,
		}},
		{"clusters", "clusters:\n- name: East\n- kubeconfig: x\n- name: a\n- name: a\n- name: b\n  namespaces: [shop-*, Shop]", []string{
			`f:2:9: clusters[0].name: bad name "East": lower-case letters, digits and -, at most 63 of them`,
			`f:3:3: clusters[1]: needs a name, or the folder of kubeconfigs that it stands for`,
			`f:5:3: clusters[3]: the name "a" is taken by the cluster on line 4`,
			`f:7:16: clusters[4].namespaces[0]: bad namespace "shop-*": globs cannot be tried here: name each namespace`,
			`f:7:24: clusters[4].namespaces[1]: bad namespace "Shop": lower-case letters, digits and -, at most 63 of them`,
		}},
		{"folders", "clusters:\n- folder: /a\n  context: x\n- folder: /a\n  name: b\n- folder: ''\n- folder: /c\n  namespaces: [A]", []string{
			`f:3:12: clusters[0].context: each file of a folder has its own: leave it out beside folder`,
			`f:4:3: clusters[1]: the folder "/a" is taken by the entry on line 2`,
			`f:5:9: clusters[1].name: each file of a folder has its own: leave it out beside folder`,
			`f:6:11: clusters[2].folder: must be the path of a folder with kubeconfigs`,
			`f:8:16: clusters[3].namespaces[0]: bad namespace "A": lower-case letters, digits and -, at most 63 of them`,
		}},
		{"postgres", "snapshot:\n  path: a.db\n  postgres: {url: \"postgres://u@h/d\"}\n  encryption: {keyFile: k}", []string{
			`f:2:9: snapshot.path: a snapshot is in a file or in a database: leave path out beside postgres`,
			`f:4:15: snapshot.encryption: only a file is encrypted: leave it out beside postgres, and see to the database's own`,
		}},
		{"replicas", "replicas: {url: 10.0.0.7, lease: informerd, leaseDuration: 1s, who: x}", []string{
			`f:1:17: replicas.url: must be where the other replicas reach this one, as in https://10.0.0.7:8080`,
			`f:1:34: replicas.lease: bad lease "informerd": NAMESPACE/NAME, as in informerd/informerd`,
			`f:1:60: replicas.leaseDuration: duration 1s is out of range: from 3s to 5m`,
			`f:1:64: replicas.who: unknown key, known are caFile, context, kubeconfig, lease, leaseDuration, serverName, url`,
		}},
		{"replicas url", "replicas: {url: 'https://u@h:1/x'}", []string{`f:1:17: replicas.url: must have no user, path, query or fragment, as in https://10.0.0.7:8080`}},
		{"replicas with handlers", "replicas: {url: 'https://h:1'}\nhandlers: [{name: a, as: informerd, resources: [pods]}]", []string{
			`f:1:11: replicas: handlers of several replicas need snapshot.postgres: what one has delivered the next one must know`,
		}},
		{"postgres without", "snapshot: {postgres: {}}", []string{`f:1:22: snapshot.postgres: must begin with postgres://, as in postgres://informerd@db.example.com/informerd?sslmode=verify-full`}},
		{"postgres password", "snapshot: {postgres: {url: 'postgres://u:secret@h/d'}}", []string{`f:1:28: snapshot.postgres.url: has a password, which whoever reads the configuration sees: put it in passwordFile`}},
		{"columns", "resources:\n- {match: [pods], columns: [[spec.nodeName], [spec.nodeName, status.phase], [status.phase, spec.nodeName], [], spec.x, ['a..b']]}\n- {match: [nodes], columns: some}\n- {match: [secrets], watch: false, columns: none}\n- {match: [jobs], columns: []}\n- {match: [leases], columns: [[metadata.managedFields]]}\n- {match: ['*'], columns: none}", []string{
			`f:2:77: resources[0].columns[2]: is given twice: the order of paths does not matter`,
			`f:2:108: resources[0].columns[3]: is empty: name the paths that questions read, as in [spec.nodeName]`,
			`f:2:112: resources[0].columns[4]: is "spec.x", needs a list: write [spec.x]`,
			`f:2:121: resources[0].columns[5][0]: bad path "a..b", column 3: recursive descent (..) is not supported; name every field`,
			`f:3:29: resources[1].columns: bad value "some": did you mean "none"?`,
			`f:4:45: resources[2].columns: of what is not watched nothing is kept: leave it out beside watch: false`,
			`f:5:28: resources[3].columns: is empty: name sets of paths, as in [[spec.nodeName]], or leave it out; none keeps no columns at all`,
			`f:6:30: resources[4].columns: extract metadata.managedFields: it is dropped by metadata.managedFields`,
		}},
		{"mirror", "resources:\n- {match: [pods], mirror: jsonb}\n- {match: [nodes], mirror: json}\n- {match: [secrets], watch: false, mirror: jsonb}\n- {match: ['*'], mirror: none}", []string{
			`f:2:27: resources[0].mirror: needs snapshot.postgres: the mirror is in the database of the snapshot`,
			`f:3:28: resources[1].mirror: bad value "json": did you mean "jsonb"?`,
			`f:4:44: resources[2].mirror: what is not watched is not mirrored: leave it out beside watch: false`,
		}},
		{"no rules", "resources: []", []string{`f:1:12: resources: has no rules and would watch nothing: leave it out for the built-in rules`}},
		{"match missing", "resources:\n- watch: true", []string{`f:2:3: resources[0]: needs match: the resources it is for, such as match: [pods] or match: ["*"]`}},
		{"match empty", "resources:\n- match: []", []string{`f:2:10: resources[0].match: is empty: name the resources it is for, such as [pods] or ["*"]`}},
		{"match is no list", "resources:\n- match: pods", []string{`f:2:10: resources[0].match: is "pods", needs a list: write [pods]`}},
		{"watch", "resources:\n- match: [pods]\n  watch: no", []string{`f:3:10: resources[0].watch: is "no", needs true or false`}},
		{"patterns", "resources:\n- match: [Pod, pods/log, 'pod[', 'a..b', a b, '', 1, ~]", []string{
			`f:2:11: resources[0].match[0]: bad pattern "Pod": resource names are lower-case plurals: pods, not Pod`,
			`f:2:16: resources[0].match[1]: bad pattern "pods/log": the group comes last, after a dot, as in deployments.apps or deployments.v1.apps; subresources cannot be watched`,
			`f:2:26: resources[0].match[2]: bad glob "pod[": a [ needs its ], as in pod[a-z]*`,
			`f:2:34: resources[0].match[3]: bad pattern "a..b": a name between dots is missing`,
			`f:2:42: resources[0].match[4]: bad pattern "a b": write it as kubectl does: pods, deployments.apps, deployments.v1.apps, *.apps or *`,
			`f:2:47: resources[0].match[5]: is empty: name a resource, such as pods, deployments.apps or *`,
			`f:2:51: resources[0].match[6]: is the number 1, needs text: put it in quotes`,
			`f:2:54: resources[0].match[7]: is empty, needs text`,
		}},
		{"never reached", "resources:\n- match: [pods, \"*.apps\"]\n- match: [pods, deployments.v1.apps]\n- match: [\"*\"]\n- match: [nodes]", []string{
			`f:3:11: resources[1].match[0]: "pods" is never reached: resources[0].match[0], "pods" on line 2, comes first and matches it`,
			`f:3:17: resources[1].match[1]: "deployments.v1.apps" is never reached: resources[0].match[1], "*.apps" on line 2, comes first and matches it`,
			`f:5:11: resources[3].match[0]: "nodes" is never reached: resources[2].match[0], "*" on line 4, comes first and matches it`,
		}},
		{"namespaces", "resources:\n- match: [pods]\n  namespaces: ['[', Shop, a, a]", []string{
			`f:3:16: resources[0].namespaces[0]: bad glob "[": a [ needs its ], as in shop-[a-z]*`,
			`f:3:21: resources[0].namespaces[1]: bad namespace "Shop": lower-case letters, digits and -, or a glob of them such as shop-*`,
			`f:3:30: resources[0].namespaces[3]: "a" is given twice`,
		}},
		{"selectors", "resources:\n- match: [pods]\n  labelSelector: a in b\n  fieldSelector: phase\n  shardSelector: \"0/2\"", []string{
			`f:3:18: resources[0].labelSelector: bad label selector "a in b": unable to parse requirement: found 'b' expected: '(': write one such as app=shop,tier in (web, db),!canary`,
			`f:4:18: resources[0].fieldSelector: bad field selector "phase": invalid selector: 'phase'; can't understand 'phase': write one such as spec.nodeName=n1,status.phase!=Failed`,
			`f:5:18: resources[0].shardSelector: bad shard selector "0/2": unsupported function "_/_"; only shardRange() and || are allowed: write one such as shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')`,
		}},
		{"indexes", `resources:
- match: [pods]
  indexes:
    label: spec.a
    Node: spec.nodeName
    a: "spec[x]"
    b: spec.c
    c: .spec.c
    d: [spec.d]
    e: metadata.managedFields[*].manager
`, []string{
			`f:4:5: resources[0].indexes.label: the index "label" is built in: choose another name`,
			`f:5:5: resources[0].indexes.Node: bad index name "Node": lower-case letters, digits, - and _, a letter first`,
			`f:6:8: resources[0].indexes.a: bad path "spec[x]", column 6: want [*], [0] or ['name']`,
			`f:8:8: resources[0].indexes.c: spec.c is indexed already, as "b"`,
			`f:9:8: resources[0].indexes.d: is a list, needs text`,
			`f:10:8: resources[0].indexes.e: extract metadata.managedFields[*].manager: it is dropped by metadata.managedFields`,
		}},
		{"cuts", "resources:\n- match: [pods]\n  drop: [metadata, spec., 'spec.containers[0]']\n  redact: [metadata.labels.app]", []string{
			`f:3:10: resources[0].drop[0]: drop metadata: metadata.name is needed to identify, select or relate objects and cannot be removed`,
			`f:3:20: resources[0].drop[1]: bad path "spec.", column 6: a field name is missing`,
			`f:3:27: resources[0].drop[2]: drop spec.containers[0]: only fields can be dropped, not elements of an array`,
			`f:4:12: resources[0].redact[0]: redact metadata.labels.app: metadata.labels is needed to identify, select or relate objects and cannot be removed`,
		}},
		{"alias", "snapshot: &s {path: x}\nverify: *s", []string{`f:1:15: verify.path: unknown key, known are interval`}},
		{"unknown alias", "verify: *s", []string{`f: not YAML: unknown anchor 's' referenced`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(test.text))
			var got []string
			for _, e := range errorsOf(t, err) {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	if _, err := config.Read(t.TempDir() + "/none"); err == nil || !strings.HasPrefix(err.Error(), "read configuration: open ") {
		t.Errorf("Read(missing) = %v", err)
	}
	large := t.TempDir() + "/large"
	if err := os.WriteFile(large, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Read(large); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("Read(large) = %v", err)
	}
}

func TestNeedsRestart(t *testing.T) {
	parse := func(text string) *config.Config {
		c, err := config.Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old := parse("")
	next := parse("listen: localhost:1\ntls: {certFile: a, keyFile: b}\nauthentication: {}\nauthorization: {mode: rbac}\naudit: {file: a.log}\npprof: 127.0.0.1:1\nprepare: [search]\nreplicas: {}\nclusters: [{name: default, context: x}]\nsnapshot: {path: x, interval: 2s, encryption: {keyFile: x}}\nverify: {interval: 2h}\nsyncs: 2\nlog: {level: debug, format: json}\nresources: [{match: [pods]}]")
	want := []string{"listen", "tls", "authentication", "authorization", "audit", "pprof", "prepare", "snapshot.path", "snapshot.encryption", "snapshot.interval", "replicas", "verify.interval", "syncs", "log.format"}
	if got := old.NeedsRestart(next); !slices.Equal(got, want) {
		t.Errorf("NeedsRestart() = %v, want %v", got, want)
	}
	if got := old.NeedsRestart(parse("log: {level: debug}\nreferences: [{edge: e, from: pods, path: a, to: pods}]\nsearch: {texts: {pods: [a]}}\nresources: [{match: [pods]}]")); got != nil {
		t.Errorf("NeedsRestart() = %v, want none", got)
	}
}

// FuzzParse: whatever the bytes, there is a valid configuration or an error that
// can be printed, never both, never a panic.
func FuzzParse(f *testing.F) {
	shipped, err := os.ReadFile("../../../config.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		string(shipped), "", "a: &a [*a]", "listen: !!binary aGk=", "? ? a", "resources: [{match: ['*.v1.']}]",
		"syncs: 0x7", "syncs: 1e3", "a: !!int x", "- - -", "%YAML 1.2\n---\n", "snapshot: {interval: !!null 1s}",
		"resources:\n- &r {match: [a]}\n- *r", "handlers:\n- {name: a, resources: [pods], as: informerd, filter: object.a == old.a, webhook: {url: http://a}}", "<<: 1", "!!merge <<: 1", "listen: 2001-01-01",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("f", data)
		switch {
		case err != nil && c != nil:
			t.Errorf("both a configuration and %v", err)
		case err != nil:
			for _, e := range errorsOf(t, err) {
				if e.Message == "" || e.Error() == "" {
					t.Errorf("an error without a message: %#v", e)
				}
			}
		case len(c.Clusters) == 0 || len(c.Resources) == 0 || c.Listen == "" || c.Syncs < 1 || c.Snapshot.Interval <= 0:
			t.Errorf("incomplete: %+v", c)
		}
	})
}

func errorsOf(t *testing.T, err error) config.Errors {
	t.Helper()
	errs, ok := err.(config.Errors)
	if !ok || len(errs) == 0 {
		t.Fatalf("error is %T %v, want config.Errors", err, err)
	}
	return errs
}

func patterns(t *testing.T, texts ...string) []config.Pattern {
	t.Helper()
	var all []config.Pattern
	for _, text := range texts {
		p, err := config.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}
