package demo

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChild_ThatIsStoppedStandsStill(t *testing.T) {
	c, err := startChild(t.Context(), exec.Command("sh", "-c", "echo http://here; while :; do :; done"))
	require.NoError(t, err)
	defer c.kill()
	state := regexp.MustCompile(`\) ([A-Z])`)
	for range 50 {
		require.NoError(t, c.stop())
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
		require.NoError(t, err)
		require.Equal(t, "T", state.FindStringSubmatch(string(stat))[1])
		require.NoError(t, c.resume())
	}
	c.kill()
	require.Error(t, c.stop(), "it is gone")
}
