package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReport_ShowsTheMedianAndWritesTheRounds(t *testing.T) {
	var out bytes.Buffer
	r := Report{Part: "part", Out: &out}
	r.Add(Figure{Name: "name", Unit: "times", Must: "2", Goal: "1"}, Ratios([]float64{2, 9, 8, 4}, []float64{1, 3, 2, 4})...)
	require.Regexp(t, `part +name +2\.50 times +must 2, goal 1\n`, out.String())

	file := filepath.Join(t.TempDir(), "figures.json")
	require.NoError(t, r.Write(file, map[string]any{"server": "one"}))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var got struct {
		Server  string
		Figures []Figure
	}
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, "one", got.Server)
	require.Equal(t, []Figure{{Part: "part", Name: "name", Median: 2.5, Unit: "times", Must: "2", Goal: "1", Rounds: []float64{2, 3, 4, 1}}}, got.Figures)
	require.NoError(t, r.Write("", nil))
}

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, Median([]float64{3, 1, 2}))
	require.Equal(t, 1.5, Median([]float64{2, 1}))
	require.Zero(t, Median(nil))
}

func TestRounds_TakeTurnsAndBeginWithAnother(t *testing.T) {
	var ways []int
	require.NoError(t, Rounds(3, 3, func(way int) error { ways = append(ways, way); return nil }))
	require.Equal(t, []int{0, 1, 2, 1, 2, 0, 2, 0, 1}, ways)
}
