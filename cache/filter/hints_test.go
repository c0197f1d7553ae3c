package filter

import (
	"strings"
	"testing"
)

// hintText writes hints as selectors.
func hintText(f *Filter) string {
	var parts []string
	for _, r := range f.Hints().Fields {
		parts = append(parts, r.String())
	}
	for _, r := range f.Hints().Labels {
		parts = append(parts, "labels:"+r.String())
	}
	for _, p := range f.Hints().Prefixes {
		parts = append(parts, p.Path.String()+"~"+p.Prefix)
	}
	return strings.Join(parts, " & ")
}

func TestHints(t *testing.T) {
	for expression, want := range map[string]string{
		`object.spec.nodeName == "n"`:                                                  "spec.nodeName=n",
		`"n" == object.spec.nodeName`:                                                  "spec.nodeName=n",
		`object.spec.nodeName == "n" && object.status.phase in ["a"]`:                  "spec.nodeName=n & status.phase in (a)",
		`object.spec.nodeName == "n" || object.spec.nodeName == "m"`:                   "spec.nodeName in (n,m)",
		`object.spec.nodeName == "n" || object.status.phase == "m"`:                    "",
		`object.spec.nodeName == "n" || true`:                                          "",
		`!(object.spec.nodeName == "n")`:                                               "",
		`object.spec.nodeName != "n"`:                                                  "spec.nodeName!=n",
		`object.spec.nodeName != "5"`:                                                  "", // the number 5 is not "5"
		`object.spec.replicas == 3`:                                                    "", // 3.0 is 3
		`object.spec.paused == true`:                                                   "spec.paused=true",
		`object.spec.nodeName == object.metadata.name`:                                 "",
		`object.spec.x in []`:                                                          "",
		`object.spec.x in [object.kind]`:                                               "",
		`"a" in object.spec.finalizers`:                                                "",
		`object.spec.list.exists(x, x == "a")`:                                         "", // x may be the key of a map
		`object.spec.list.exists(x, x.name == "a")`:                                    "spec.list[*].name=a",
		`object.spec.list.exists(x, x.name != "a")`:                                    "",
		`object.spec.list.exists(x, x.subs.exists(y, y.name == "a" && x.kind == "b"))`: "spec.list[*].subs[*].name=a & spec.list[*].kind=b",
		`object.spec.list.exists(x, x.name == "a" || x.name == "b")`:                   "spec.list[*].name in (a,b)",
		`object.spec.list.all(x, x.name == "a")`:                                       "",
		`object.spec.list.exists_one(x, x.name == "a")`:                                "",
		`object.spec.list.exists(object, object.name == "a")`:                          "spec.list[*].name=a",
		`object.spec.list[0].name == "a"`:                                              "spec.list[0].name=a",
		`object["spec"]["node.name"] == "a"`:                                           "spec['node.name']=a",
		`object.spec["it's"] == "a"`:                                                   `spec['it\'s']=a`,
		`object.metadata.labels.app == "web"`:                                          "labels:app=web",
		`object.metadata.labels["a.b/c"] in ["x", "y"]`:                                "labels:a.b/c in (x,y)",
		`has(object.metadata.labels.app)`:                                              "labels:app",
		`"a.b/c" in object.metadata.labels`:                                            "labels:a.b/c",
		`!has(object.metadata.labels.app)`:                                             "",
		`object.metadata.labels["not a key"] == "x"`:                                   "",
		`object.?spec.nodeName.orValue("") == "n"`:                                     "spec.nodeName=n",
		`object.?spec.nodeName.orValue("n") == "n"`:                                    "",
		`object.?spec[?"nodeName"].orValue("") in ["a", "b"]`:                          "spec.nodeName in (a,b)",
		`object.metadata.namespace.startsWith("team-")`:                                "metadata.namespace~team-",
		`object.?spec.nodeName.orValue("").startsWith("n")`:                            "spec.nodeName~n",
		`object.spec.list.exists(x, x.name.startsWith("a"))`:                           "",
		`object.spec.nodeName.startsWith(object.metadata.name)`:                        "",
		`object.?spec.nodeName.orValue("nn").startsWith("n")`:                          "",
		`object.spec.nodeName == "n" ? true : false`:                                   "",
		`(object.spec.nodeName == "n") == true`:                                        "",
	} {
		f, err := Compile(expression, noon)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got := hintText(f); got != want {
			t.Errorf("%s: hints %q, want %q", expression, got, want)
		}
	}
}
