package cache

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// newer reports whether resourceVersion a is after b. An empty version is
// before every other. Where two versions cannot be compared, as with some
// aggregated API servers, whatever comes later is newer.
func newer(a, b string) bool {
	if a == b || a == "" {
		return false
	}
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || c > 0
}

// older reports whether resourceVersion a is known to be before b.
func older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

// checkVersion refuses a resourceVersion that no comparison is possible with.
func checkVersion(version string) error {
	const any = "1"
	if _, err := resourceversion.CompareResourceVersion(version, any); err != nil {
		return invalidf("resourceVersion", "%q is not a resourceVersion: want a decimal number such as \"1234\"", strings.ToValidUTF8(version, "?"))
	}
	return nil
}
