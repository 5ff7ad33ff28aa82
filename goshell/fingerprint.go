package goshell

import (
	"crypto/sha256"
	"slices"
	"strings"
)

// fingerprint is the SHA-256 over METHOD LF escaped path LF body or, when the contract includes the query, over METHOD
// LF escaped path LF sorted query LF body. The body is the canonical or the raw one, as the contract says. A method, an
// escaped path and a raw query hold no LF, so no two requests of a contract share the bytes that are hashed.
func fingerprint(method, escapedPath string, query *string, body []byte) [32]byte {
	head := []byte(method + "\n" + escapedPath + "\n")
	if query != nil {
		head = append(head, sortedQuery(*query)+"\n"...)
	}
	hash := sha256.New()
	_, _ = hash.Write(head)
	_, _ = hash.Write(body)
	return [32]byte(hash.Sum(nil))
}

// sortedQuery puts the pairs of a raw query in the order of their names; pairs of one name keep their order. Nothing is
// parsed or decoded: what a parser would drop or rewrite would give two requests one fingerprint.
func sortedQuery(raw string) string {
	pairs := strings.Split(raw, "&")
	slices.SortStableFunc(pairs, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, "=")
		nameB, _, _ := strings.Cut(b, "=")
		return strings.Compare(nameA, nameB)
	})
	return strings.Join(pairs, "&")
}
