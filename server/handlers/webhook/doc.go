// Package webhook delivers to a URL: CloudEvents over HTTP, signed as Standard Webhooks says.
//
// It refuses to be used against the network it runs in: addresses are checked when they are
// dialled, after names were resolved, and private ones are refused unless they are allowed;
// redirects are not followed and no proxy is taken from the environment. Nothing of the URL
// but its host, and nothing of secrets, is in an error.
package webhook
