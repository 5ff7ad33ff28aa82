package main

import (
	"net/url"
	"path/filepath"

	"github.com/pgidem/pgidem/goshell/openapi"
	"github.com/pgidem/pgidem/sql"
)

// The part of SARIF 2.1.0 that says what was found where.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID   openapi.Rule `json:"id"`
		Help sarifText    `json:"help"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    openapi.Rule    `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
)

func sarifOf(violations openapi.Violations) sarifLog {
	driver := sarifDriver{Name: "pgidem", Version: sql.Version()}
	for _, rule := range openapi.Rules() {
		driver.Rules = append(driver.Rules, sarifRule{rule, sarifText{rule.Mend()}})
	}
	results := make([]sarifResult, len(violations))
	for i, v := range violations {
		at := sarifLocation{Physical: sarifPhysical{sarifArtifact{(&url.URL{Path: filepath.ToSlash(v.File)}).String()}, sarifRegion{v.Line, v.Column}}}
		if v.Path != "" {
			at.Logical = []sarifLogical{{v.Operation()}}
		}
		results[i] = sarifResult{v.Rule, "error", sarifText{v.Problem + ": " + v.Mend}, []sarifLocation{at}}
	}
	return sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{{Tool: sarifTool{driver}, ColumnKind: "unicodeCodePoints", Results: results}},
	}
}
