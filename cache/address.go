package cache

import (
	"net/url"
	"strings"
)

// PublicAddress is the address of an API server as a kubeconfig has it, with or without
// a scheme, for logs and answers: a password that it holds is not shown.
func PublicAddress(address string) string {
	if !strings.Contains(address, "@") {
		return address
	}
	full := address
	if !strings.Contains(address, "://") {
		full = "//" + address
	}
	u, err := url.Parse(full)
	if err != nil {
		// Nothing is known of it but that somebody may be named before the last @.
		return "xxxxx@" + address[strings.LastIndexByte(address, '@')+1:]
	}
	return strings.TrimPrefix(u.Redacted(), "//")
}
