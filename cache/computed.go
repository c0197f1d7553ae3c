package cache

import (
	"slices"
	"strings"

	"github.com/informerd/informerd/cache/rawjson"
)

// computed are the values of objects that are in none of their fields: functions of what an
// object is and of the time. Where objects are sorted, grouped or counted they are named as
// paths are. Who answers such a question works them out: for OrderKey.Value, or into the JSON
// that is read, as fields of these names.
var computed = []string{"health()", "healthReason()"}

// ParseValueIn is rawjson.ParsePathIn that knows the names of computed values, too.
func ParseValueIn(s string, start, end int) (rawjson.Path, error) {
	if name, ok := strings.CutSuffix(strings.TrimSpace(s[start:end]), "()"); ok && slices.Contains(computed, name+"()") {
		return rawjson.Computed(name), nil
	}
	return rawjson.ParsePathIn(s, start, end)
}

// Computed reports whether p names a computed value.
func Computed(p rawjson.Path) bool { return slices.Contains(computed, p.String()) }
