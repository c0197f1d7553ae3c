package web

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// The page is served under "default-src 'self'": scripts, styles and handlers
// written into the HTML would not run, and nothing may come from elsewhere.
func TestPageObeysContentSecurityPolicy(t *testing.T) {
	page, err := fs.ReadFile(FS(), "index.html")
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"inline script":  `<script>|<script [^>]*[^>]>[^<]`,
		"inline style":   `<style|\sstyle=`,
		"inline handler": `\son[a-z]+=`,
		"other origin":   `(src|href)="(https?:)?//`,
		"absolute path":  `(src|href)="/`,
	} {
		if found := regexp.MustCompile(bad).Find(page); found != nil {
			t.Errorf("%s in index.html: %s", name, found)
		}
	}
}

// What would need an exception in the policy: code made from strings, and data:
// URLs in the style sheet.
func TestFilesObeyContentSecurityPolicy(t *testing.T) {
	err := fs.WalkDir(FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(FS(), name)
		if err != nil {
			return err
		}
		for what, bad := range map[string]string{
			"code from a string": `\bnew Function\(|\beval\(`,
			"data URL":           `url\(["']?data:|@import`,
			"source map":         `sourceMappingURL`,
		} {
			if found := regexp.MustCompile(bad).Find(text); found != nil {
				t.Errorf("%s in %s: %s", what, name, found)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPageLoadsOnlyFilesThatExist(t *testing.T) {
	page, err := fs.ReadFile(FS(), "index.html")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?:src|href)="(?:\./)?([\w.-]+\.(?:js|css|svg))"`).FindAllSubmatch(page, -1)
	if len(found) < 3 {
		t.Fatalf("index.html loads %d files; want a script, a style sheet and an icon", len(found))
	}
	for _, m := range found {
		name := strings.TrimPrefix(string(m[1]), "./")
		if _, err := fs.Stat(FS(), name); err != nil {
			t.Errorf("index.html loads %s: %v", name, err)
		}
	}
}
