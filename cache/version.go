package cache

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Newer reports whether resourceVersion a is after b. An empty version is before
// every other. Where two versions cannot be compared, as with some aggregated API
// servers, whatever comes later is newer.
func Newer(a, b string) bool {
	if a == b || a == "" {
		return false
	}
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || c > 0
}

// Older reports whether resourceVersion a is known to be before b.
func Older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

// noNewer reports whether resourceVersion a is not after b, of two that can be compared: those are
// decimal numbers without leading zeros. It does not look whether they are, and is for whoever
// compares a million; of others it reports one or the other.
func noNewer(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a <= b }

// compareVersions orders resourceVersions: "" first, and equal what cannot be
// compared.
func compareVersions(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "" || Older(a, b):
		return -1
	case b == "" || Older(b, a):
		return 1
	default:
		return 0
	}
}

// checkVersion refuses a resourceVersion that no comparison is possible with.
func checkVersion(version string) error {
	const any = "1"
	if _, err := resourceversion.CompareResourceVersion(version, any); err != nil {
		return invalidf("resourceVersion", "%q is not a resourceVersion: want a decimal number such as \"1234\"", strings.ToValidUTF8(version, "?"))
	}
	return nil
}
