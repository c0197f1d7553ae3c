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

// TestPostgresSeveralHosts: of several hosts the one that can be written counts, unless the URL
// says otherwise.
func TestPostgresSeveralHosts(t *testing.T) {
	for url, checked := range map[string]bool{
		"postgres://u@a/db": false, "postgres://u@a,b/db": true, "postgres://u@a:1,a:2/db?sslmode=prefer": true,
	} {
		o := PostgresOptions{URL: url}
		c, err := o.config()
		if err != nil {
			t.Fatal(err)
		}
		if o.tune(c); (c.ConnConfig.ValidateConnect != nil) != checked {
			t.Errorf("%s: checked: %v, want %v", url, !checked, checked)
		}
	}
}
