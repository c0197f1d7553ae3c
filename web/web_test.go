package web

import (
	"io/fs"
	"regexp"
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
	} {
		if found := regexp.MustCompile(bad).Find(page); found != nil {
			t.Errorf("%s in index.html: %s", name, found)
		}
	}
}

func TestPageLoadsOnlyFilesThatExist(t *testing.T) {
	page, err := fs.ReadFile(FS(), "index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="([\w.-]+\.(?:js|css|svg))"`).FindAllSubmatch(page, -1) {
		if _, err := fs.Stat(FS(), string(m[1])); err != nil {
			t.Errorf("index.html loads %s: %v", m[1], err)
		}
	}
}
