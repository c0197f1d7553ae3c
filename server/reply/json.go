package reply

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JSON encodes a value on one line, or indented. It leaves &, < and > as they
// are, unlike json.Marshal: messages name URLs, and no answer is taken for HTML.
func JSON(value any, pretty bool) ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if pretty {
		enc.SetIndent("", "  ")
	}
	err := enc.Encode(value)
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), err
}

// Failure is the Status that a request is refused with.
func Failure(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     int32(code),
		Reason:   reason,
		Message:  message,
	}
}
