package main

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// source is a public function as install.sql lists it.
type source struct {
	heading string // of the group, such as Unit of work
	name    string
	file    string // below sql/
}

// manifest returns the public functions in the order of install.sql. The heading of a function is the comment line that
// stands before its group.
func manifest(fsys fs.FS) ([]source, error) {
	text, err := fs.ReadFile(fsys, "install.sql")
	if err != nil {
		return nil, err
	}
	var sources []source
	var heading string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, "-- "); ok {
			heading = comment
		}
		file, ok := strings.CutPrefix(line, `\ir functions/`)
		if !ok {
			continue
		}
		name := strings.TrimSuffix(path.Base(file), ".sql")
		if strings.HasPrefix(name, "_") {
			continue
		}
		if heading == "" {
			return nil, fmt.Errorf("install.sql loads %s under no heading: write a line -- Heading before the group", file)
		}
		sources = append(sources, source{heading, name, "functions/" + file})
	}
	return sources, nil
}
