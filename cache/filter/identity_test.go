package filter

import "testing"

// TestOfIdentity: which expressions need no more than what is known of an object without its
// JSON, and that they say the same of that, mistakes included.
func TestOfIdentity(t *testing.T) {
	const json = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n-1","uid":"u-1","resourceVersion":"7","labels":{"a":"b"}},"spec":{"podCIDR":"10.0.0.0/8"}}`
	for text, want := range map[string]bool{
		`object.metadata.name != ''`:                                                         true,
		`.object.metadata.name != ''`:                                                        true,
		`object.metadata.name.startsWith('n-')`:                                              true,
		`object.metadata.name in ['n-1', 'n-2'] && object.kind == 'Node'`:                    true,
		`has(object.metadata.namespace)`:                                                     true,
		`object.metadata.namespace == 'shop'`:                                                true,
		`object.metadata.name.deeper == 1`:                                                   true,
		`object.metadata.resourceVersion == '7' || object.metadata.uid == object.apiVersion`: true,
		`['n-1'].exists(n, n == object.metadata.name)`:                                       true,
		`now > timestamp('2020-01-01T00:00:00Z') && true`:                                    true,
		`object.metadata.generateName == ''`:                                                 false,
		`object.metadata.labels.a == 'b'`:                                                    false,
		`object.metadata.name == 'n-1' && has(object.spec.podCIDR)`:                          false,
		`has(object.metadata)`:                                                               false,
		`object.metadata == {}`:                                                              false,
		`object["metadata"].name == 'n-1'`:                                                   false,
		`object.?metadata.?name.orValue('') == 'n-1'`:                                        false,
		`health(object) == 'good'`:                                                           false,
		`[object].exists(o, o.spec.podCIDR != '')`:                                           false,
		`object == object`:                                                                   false,
		`'metadata' in object`:                                                               false,
		`object.metadata.exists(k, k == 'labels')`:                                           false,
	} {
		f, err := Compile(text, noon)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if f.OfIdentity() != want {
			t.Errorf("%s: %v", text, !want)
		}
		if !want {
			continue
		}
		identity := `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n-1","uid":"u-1","resourceVersion":"7"}}`
		whole, _, wholeErr := f.Match(t.Context(), []byte(json))
		part, _, partErr := f.Match(t.Context(), []byte(identity))
		if whole != part || (wholeErr == nil) != (partErr == nil) || wholeErr != nil && wholeErr.Error() != partErr.Error() {
			t.Errorf("%s: %v, %v of the object, %v, %v of what is known without it", text, whole, wholeErr, part, partErr)
		}
	}
}
