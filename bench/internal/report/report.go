// Package report collects the figures of a benchmark, shows each as it comes, and writes them as JSON. A figure is the median over
// rounds that took turns on one machine; ratios are taken within a round, so that what else the machine did falls on both sides.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// Figure is one line of the result.
type Figure struct {
	Part   string    `json:"part"`
	Name   string    `json:"name"`
	Median float64   `json:"median"`
	Unit   string    `json:"unit"`
	Must   string    `json:"must,omitempty"` // the target, "" for none
	Goal   string    `json:"goal,omitempty"`
	Rounds []float64 `json:"rounds"`
}

// Report is the result of a run.
type Report struct {
	Part    string // of the figures that come next
	Figures []Figure
	Out     io.Writer
}

// Add notes the figures of all rounds and shows their median.
func (r *Report) Add(f Figure, rounds ...float64) {
	f.Part, f.Rounds, f.Median = r.Part, rounds, Median(rounds)
	r.Figures = append(r.Figures, f)
	targets := ""
	if f.Must != "" {
		targets = fmt.Sprintf("  must %s, goal %s", f.Must, f.Goal)
	}
	fmt.Fprintf(r.Out, "%-10s %-86s %9.2f %-8s%s\n", f.Part, f.Name, f.Median, f.Unit, targets)
}

// Write writes the figures, and what else is to be known of the run, to a file; to none when file is "".
func (r *Report) Write(file string, about map[string]any) error {
	if file == "" {
		return nil
	}
	about["figures"] = r.Figures
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// Rounds runs each of the n ways once a round. They take turns, and each round begins with another one.
func Rounds(rounds, n int, run func(way int) error) error {
	for round := range rounds {
		for turn := range n {
			if err := run((turn + round) % n); err != nil {
				return err
			}
		}
	}
	return nil
}

// Median returns the middle of the values, 0 when there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Ratios divides the rounds of one measurement by those of another.
func Ratios(numerator, denominator []float64) []float64 {
	result := make([]float64, len(numerator))
	for i := range result {
		result[i] = numerator[i] / denominator[i]
	}
	return result
}
