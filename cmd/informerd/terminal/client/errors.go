package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxStatus bounds what is read of an answer that is an error.
const maxStatus = 1 << 20

// StatusError is informerd's no to a question.
type StatusError struct {
	Server string
	metav1.Status
	// RetryAfter is what the header of that name says.
	RetryAfter string
}

func (e *StatusError) Error() string {
	text := e.Message
	if advice := e.advice(); advice != "" {
		text += "\n" + advice
	}
	return text
}

// Names tells whether the parameter is what is wrong.
func (e *StatusError) Names(parameter string) bool {
	if e.Details == nil {
		return false
	}
	return slices.ContainsFunc(e.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == parameter })
}

// advice is what may be done about it.
func (e *StatusError) advice() string {
	switch e.Code {
	case http.StatusUnauthorized:
		return e.Server + " wants to know who asks: give --token-file or --token, or --client-certificate and --client-key"
	case http.StatusForbidden:
		return "kubectl auth can-i list RESOURCE says what you may see; informerd shows no more than the API server would"
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if e.RetryAfter != "" {
			return "It may be otherwise in " + e.RetryAfter + " s; " + e.Server + "/readyz?verbose says how it stands."
		}
	}
	return ""
}

// refusal is the error in an answer that is not 200.
func (c *Client) refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	e := &StatusError{Server: c.Server, RetryAfter: resp.Header.Get("Retry-After")}
	if err != nil || json.Unmarshal(body, &e.Status) != nil || e.Kind != "Status" || e.Message == "" {
		return c.foreign(resp)
	}
	e.Code = int32(resp.StatusCode)
	return e
}

// ForeignError is an answer that informerd does not give.
type ForeignError struct{ Server, Source, Answer string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s (%s) answers, but not as informerd does: %s\n%s", e.Server, e.Source, e.Answer, howToName)
}

func (c *Client) foreign(resp *http.Response) error {
	return &ForeignError{c.Server, c.Source, strings.TrimSpace(resp.Status + " " + resp.Header.Get("Content-Type"))}
}

// UnreachableError is no answer at all.
type UnreachableError struct {
	Server, Source string
	Err            error
}

const howToName = "Name another with --server or the environment variable INFORMERD; informerd serve starts one."

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no answer from %s (%s): %v\n%s", e.Server, e.Source, e.Err, howToName)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// unreachable is the error of a request that had no answer; of one that was given up it is
// why.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &UnreachableError{c.Server, c.Source, rootOf(err)}
}

// rootOf leaves out that it was a GET, and of which URL.
func rootOf(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok && u.Unwrap() != nil && strings.HasPrefix(err.Error(), "Get ") {
		return u.Unwrap()
	}
	return err
}
