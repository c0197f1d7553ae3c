// Package web is the browser page of informerd as a file system: index.html and
// what it loads, nothing from elsewhere. It knows no server and no cache; all it
// shows comes from the query API.
package web

import (
	"embed"
	"io/fs"
)

//go:embed dist
var dist embed.FS

// FS returns the files of the page; index.html is at its root.
func FS() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a constant and embedded
	}
	return sub
}
