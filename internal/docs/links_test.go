package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Links to files of the project and to headings in them lead somewhere.
func TestDocuments_LinksLeadSomewhere(t *testing.T) {
	for _, document := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, document), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := document
			if target != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(document), target))
			}
			_, err := os.Stat(filepath.Join(root, path))
			if !assert.NoError(t, err, "%s: %s", document, m[1]) || anchor == "" {
				continue
			}
			assert.Contains(t, anchors(read(t, path)), anchor, "%s: %s", document, m[1])
		}
	}
}

// anchors are the names that a reader of Markdown gives to headings.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		all = append(all, strings.ReplaceAll(strings.ToLower(dropped.ReplaceAllString(m[1], "")), " ", "-"))
	}
	return all
}
