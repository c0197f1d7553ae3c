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
	for _, r := range f.Hints().Ranges {
		text := r.Path.String()
		for _, one := range r.Ranges {
			text += " " + one.String()
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " & ")
}

func TestHints(t *testing.T) {
	for expression, want := range map[string]string{
		`object.spec.nodeName == "n"`:                                                                             "spec.nodeName=n",
		`"n" == object.spec.nodeName`:                                                                             "spec.nodeName=n",
		`object.spec.nodeName == "n" && object.status.phase in ["a"]`:                                             "spec.nodeName=n & status.phase in (a)",
		`object.spec.nodeName == "n" || object.spec.nodeName == "m"`:                                              "spec.nodeName in (n,m)",
		`object.spec.nodeName == "n" || object.status.phase == "m"`:                                               "",
		`object.spec.nodeName == "n" || true`:                                                                     "",
		`!(object.spec.nodeName == "n")`:                                                                          "",
		`object.spec.nodeName != "n"`:                                                                             "spec.nodeName!=n",
		`object.spec.nodeName != "5"`:                                                                             "", // the number 5 is not "5"
		`object.spec.replicas == 3`:                                                                               "spec.replicas [3,3]",
		`object.spec.paused == true`:                                                                              "spec.paused=true",
		`object.spec.nodeName == object.metadata.name`:                                                            "",
		`object.spec.x in []`:                                                                                     "",
		`object.spec.x in [object.kind]`:                                                                          "",
		`"a" in object.spec.finalizers`:                                                                           "",
		`object.spec.list.exists(x, x == "a")`:                                                                    "", // x may be the key of a map
		`object.spec.list.exists(x, x.name == "a")`:                                                               "spec.list[*].name=a",
		`object.spec.list.exists(x, x.name != "a")`:                                                               "",
		`object.spec.list.exists(x, x.subs.exists(y, y.name == "a" && x.kind == "b"))`:                            "spec.list[*].subs[*].name=a & spec.list[*].kind=b",
		`object.spec.list.exists(x, x.name == "a" || x.name == "b")`:                                              "spec.list[*].name in (a,b)",
		`object.spec.list.all(x, x.name == "a")`:                                                                  "",
		`object.spec.list.exists_one(x, x.name == "a")`:                                                           "",
		`object.spec.list.exists(object, object.name == "a")`:                                                     "spec.list[*].name=a",
		`object.spec.list[0].name == "a"`:                                                                         "spec.list[0].name=a",
		`object["spec"]["node.name"] == "a"`:                                                                      "spec['node.name']=a",
		`object.spec["it's"] == "a"`:                                                                              `spec['it\'s']=a`,
		`object.metadata.labels.app == "web"`:                                                                     "labels:app=web",
		`object.metadata.labels["a.b/c"] in ["x", "y"]`:                                                           "labels:a.b/c in (x,y)",
		`has(object.metadata.labels.app)`:                                                                         "labels:app",
		`"a.b/c" in object.metadata.labels`:                                                                       "labels:a.b/c",
		`!has(object.metadata.labels.app)`:                                                                        "",
		`object.metadata.labels["not a key"] == "x"`:                                                              "",
		`object.?spec.nodeName.orValue("") == "n"`:                                                                "spec.nodeName=n",
		`object.?spec.nodeName.orValue("n") == "n"`:                                                               "",
		`object.?spec[?"nodeName"].orValue("") in ["a", "b"]`:                                                     "spec.nodeName in (a,b)",
		`object.metadata.namespace.startsWith("team-")`:                                                           "metadata.namespace [team-,team.)",
		`object.?spec.nodeName.orValue("").startsWith("n")`:                                                       "spec.nodeName [n,o)",
		`object.spec.list.exists(x, x.name.startsWith("a"))`:                                                      "spec.list[*].name [a,b)",
		`object.spec.list.exists(x, x.startsWith("a"))`:                                                           "", // as above
		`object.spec.nodeName.startsWith(object.metadata.name)`:                                                   "",
		`object.?spec.nodeName.orValue("nn").startsWith("n")`:                                                     "",
		`object.spec.replicas > 3`:                                                                                "spec.replicas (3,∞)",
		`3 >= object.spec.replicas`:                                                                               "spec.replicas (-∞,3]",
		`object.spec.share < 0.25 && object.spec.share >= -1.5`:                                                   "spec.share (-∞,250m) & spec.share [-1500m,∞)",
		`object.spec.share < 0.1234567890123`:                                                                     "", // finer than an index
		`object.spec.share < 9007199254740993.0`:                                                                  "",
		`object.spec.replicas in [1, 3]`:                                                                          "spec.replicas [1,1] [3,3]",
		`object.spec.replicas < 2 || object.spec.replicas > 5`:                                                    "spec.replicas (-∞,2) (5,∞)",
		`object.spec.replicas < 2 || object.spec.other > 5`:                                                       "",
		`!(object.spec.replicas < 2)`:                                                                             "",
		`object.spec.replicas != 2`:                                                                               "",
		`object.spec.replicas > object.status.replicas`:                                                           "",
		`object.?status.replicas.orValue(0) > 0`:                                                                  "status.replicas (0,∞)",
		`object.?status.replicas.orValue(1) > 0`:                                                                  "", // what has none matches
		`object.?status.replicas.orValue(object.spec.replicas) > 0`:                                               "",
		`object.spec.nodeName >= "m"`:                                                                             "spec.nodeName [m,∞)",
		`object.?spec.nodeName.orValue("z") >= "m"`:                                                               "",
		`object.spec.list.exists(x, x.count > 3)`:                                                                 "spec.list[*].count (3,∞)",
		`quantity(object.spec.memory).isGreaterThan(quantity("1Gi"))`:                                             "spec.memory (1073741824,∞)",
		`quantity("500m").isGreaterThan(quantity(object.spec.cpu))`:                                               "spec.cpu (-∞,500m)",
		`quantity(object.?spec.cpu.orValue("0")).isLessThan(quantity("1"))`:                                       "",
		`quantity(object.?spec.cpu.orValue("2")).isLessThan(quantity("1"))`:                                       "spec.cpu (-∞,1)",
		`quantity(object.spec.cpu).compareTo(quantity("2")) >= 0`:                                                 "spec.cpu [2,∞)",
		`0 == quantity(object.spec.cpu).compareTo(quantity("2"))`:                                                 "spec.cpu [2,2]",
		`quantity(object.spec.cpu).compareTo(quantity("2")) > 1`:                                                  "",
		`object.spec.list.exists(c, quantity(c.memory).isLessThan(quantity("1Ki")))`:                              "spec.list[*].memory (-∞,1024)",
		`age(object) > duration("1h")`:                                                                            "metadata.creationTimestamp (-∞,2026-01-02T11:00:00Z)",
		`duration("1h") >= age(object)`:                                                                           "metadata.creationTimestamp [2026-01-02T11:00:00Z,∞)",
		`timestamp(object.metadata.creationTimestamp) < now - duration("1h")`:                                     "metadata.creationTimestamp (-∞,2026-01-02T11:00:00Z)",
		`timestamp(object.status.startTime) + duration("60m") <= now`:                                             "status.startTime (-∞,2026-01-02T11:00:00Z]",
		`timestamp("2026-01-02T00:00:00.5Z") > timestamp(object.status.startTime)`:                                "status.startTime (-∞,2026-01-02T00:00:00.5Z)",
		`timestamp(object.?status.startTime.orValue("2000-01-01T00:00:00Z")) > timestamp("2026-01-01T00:00:00Z")`: "status.startTime (2026-01-01T00:00:00Z,∞)",
		`timestamp(object.?status.startTime.orValue("2027-01-01T00:00:00Z")) > timestamp("2026-01-01T00:00:00Z")`: "",
		`timestamp(object.status.startTime) > now && object.spec.list.exists(now, now.at > now.than)`:             "status.startTime (2026-01-02T12:00:00Z,∞)",
		`object.spec.list.exists(now, object.spec.x > now)`:                                                       "",
		`object.spec.nodeName == "n" ? true : false`:                                                              "",
		`(object.spec.nodeName == "n") == true`:                                                                   "",
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
