package rawjson

import "testing"

func TestMember(t *testing.T) {
	names := []string{"metadata", "resourceVersion"}
	for src, want := range map[string]string{
		`{"metadata":{"resourceVersion":"7"}}`:                                           `"7"`,
		` { "a" : [ {"metadata":1} ], "metadata" : { "x":{}, "resourceVersion" : 7 } } `: `7`,
		`{"metadata":{"resourceVersion":"7","resourceVersion":"8"}}`:                     `"8"`,
		`{"metadata":{"resourceVersion":"7"},"metadata":{"resourceVersion":"9"}}`:        `"9"`,
		`{"metadata":{"resourceVersion":"7"},"metadata":{}}`:                             ``,
		`{"met\u0061data":{"resource\u0056ersion":"a\"b"}}`:                              `"a\"b"`,
		`{"metadata":{"labels":{"resourceVersion":"1"}}}`:                                ``,
		`{"metadata":["resourceVersion"]}`:                                               ``,
		`{}`:                                                                             ``,
		`[]`:                                                                             ``,
		``:                                                                               ``,
	} {
		start, end, ok := Member([]byte(src), names...)
		if got := src[start:end]; got != want || ok != (want != "") {
			t.Errorf("Member(%s) = %s, %v, want %s", src, got, ok, want)
		}
	}
}
