// Package docs has the tests that hold the documents to what is true: the commands and snippets in them run, their links
// lead somewhere, their tables are those of the database.
package docs
