package filter

import (
	"fmt"
	"testing"
)

func TestWithin(t *testing.T) {
	for text, want := range map[string]string{
		`object.spec.nodeName.endsWith('7')`:                                                                      "[spec.nodeName]",
		`.object.spec.nodeName == ''`:                                                                             "[spec.nodeName]",
		`has(object.spec.nodeName) && object.status.phase == 'Running'`:                                           "[spec.nodeName status.phase]",
		`object.spec.containers.exists(c, c.image == object.metadata.name)`:                                       "[spec.containers[*].image metadata.name]",
		`object.spec.containers.all(i, c, i < 3 && has(c.image))`:                                                 "[spec.containers[*].image]",
		`object.spec.containers.exists(c, c.ports.exists(p, p.containerPort == 80) || c.?name.orValue('') == '')`: "[spec.containers[*].ports[*].containerPort spec.containers[*].name]",
		`object.spec.containers.exists(c, c.ports.exists(c, c.hostPort == 80) && c.name == '')`:                   "[spec.containers[*].ports[*].hostPort spec.containers[*].name]",
		`object.spec.containers.map(c, c.image).exists(c, c == '')`:                                               "[spec.containers[*].image]",
		`object.spec.containers.filter(c, c.image == '').size() > 0`:                                              "[spec.containers[*].image spec.containers[*]]",
		`object.spec.containers.exists(c, true)`:                                                                  "[spec.containers]",
		`object.spec.containers.exists(c, c == object.spec.name)`:                                                 "[spec.containers[*] spec.name]",
		`object.metadata.labels.exists(k, object.metadata.labels[k] == 'x')`:                                      "[metadata.labels metadata.labels[*]]",
		`object.metadata.labels.exists(k, k == 'x') && object.metadata.labels.app == 'y'`:                         "[metadata.labels[*] metadata.labels.app]",
		`object.spec.a.exists(c, c.image == 'x') && object.spec.ab == 'y'`:                                        "[spec.a[*].image spec.ab]",
		`object.spec.containers.exists(c, [c].exists(d, d.image == ''))`:                                          "[spec.containers[*]]",
		`object.spec.containers.exists(c, .object.spec.x == '')`:                                                  "[spec.containers spec.x]",
		`object.metadata.labels['a.b/c'] == 'x'`:                                                                  "[metadata.labels['a.b/c']]",
		`object['spec'].?nodeName.orValue('') == ''`:                                                              "[spec.nodeName]",
		`object.?spec.?nodeName.orValue('') == object[?'kind'].orValue('')`:                                       "[spec.nodeName kind]",
		`object.spec.containers[0].image == ''`:                                                                   "[spec.containers]",
		`'x' in object.metadata.labels`:                                                                           "[metadata.labels]",
		`now > timestamp('2020-01-01T00:00:00Z')`:                                                                 "[]",
		`object.metadata.labels[object.metadata.name] == 'x'`:                                                     "[metadata.labels metadata.name]",
		`object == object`:                                     "the whole",
		`[object].exists(o, o.spec.paused)`:                    "the whole",
		`object.exists(k, k == 'spec')`:                        "the whole",
		`object[object.kind] == 1`:                             "the whole",
		`health(object) == 'good'`:                             "the whole",
		`age(object) > duration('1h')`:                         "[metadata.creationTimestamp]",
		`[1].exists(object, object > 0) && object.spec.paused`: "the whole",
		`cel.bind(o, object, o.spec.paused)`:                   "",
	} {
		f, err := Compile(text, noon)
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		got := "the whole"
		if paths, ok := f.Within(); ok {
			got = fmt.Sprint(paths)
		}
		if want != "" && got != want || want == "" && got != "the whole" {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
