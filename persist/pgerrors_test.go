package persist

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestPostgresSaid: what cannot be had in a test is said as well as what can, see
// TestPostgresRefused.
func TestPostgresSaid(t *testing.T) {
	for code, want := range map[string]string{
		"53100": "its disk is full",
		"25006": "it is read-only",
		"57014": "a statement took too long",
		"55P03": "somebody else has locked the tables",
		"42703": "drop the schema to have them made anew",
		"3D000": "there is no such database",
		"28P01": "it does not let the user in",
		"42501": "the user lacks a right",
	} {
		cause := fmt.Errorf("commit: %w", &pgconn.PgError{Code: code, Message: "what it says itself"})
		err := said(cause)
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "what it says itself") || !errors.Is(err, cause) {
			t.Errorf("%s: %v, want %q", code, err, want)
		}
	}
}
