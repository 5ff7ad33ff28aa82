package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestKeyNew_PrintsUUIDsOfVersion7InOrder(t *testing.T) {
	require.Len(t, strings.Fields(command(t, "key", "new").stdout), 1)
	got := command(t, "key", "new", "-n", "500")
	require.Equal(t, exitOK, got.code)
	keys := strings.Fields(got.stdout)
	require.Len(t, keys, 500)
	require.True(t, slices.IsSorted(keys))
	require.Len(t, slices.Compact(keys), 500)
	for _, key := range keys {
		parsed, err := uuid.Parse(key)
		require.NoError(t, err)
		require.Equal(t, uuid.Version(7), parsed.Version())
		require.Len(t, key, 36)
	}
}
