package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisServer is a throwaway Redis. It ends with this process.
type redisServer struct {
	address string
	client  *redis.Client
	dir     string
	end     io.Closer
}

// startRedis starts a Redis whose append-only file is flushed with each write ("always"), or that has none ("no").
func startRedis(ctx context.Context, appendfsync string) (*redisServer, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server is missing: install it, as scripts/setup bench does on Debian: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgidem-redis-")
	if err != nil {
		return nil, err
	}
	settings := []string{program, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no"}
	if appendfsync != "no" {
		settings[len(settings)-1] = "yes"
		settings = append(settings, "--appendfsync", appendfsync)
	}
	// The shell ends it with its own standard input, which the system closes when this process ends in any way.
	cmd := exec.Command("sh", append([]string{"-c", `"$@" >/dev/null & read -r _; kill -9 $!`, "sh"}, settings...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &redisServer{address: address, client: redis.NewClient(&redis.Options{Addr: address, PoolSize: 4}), dir: dir, end: stdin}
	for range 500 {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return s, s.client.Ping(ctx).Err()
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, errors.New("redis-server does not answer")
}

func (s *redisServer) stop() {
	_ = s.client.Close()
	_ = s.end.Close()
	_ = os.RemoveAll(s.dir)
}

// written returns how many commands Redis has answered, this one among them, and how many changes they made.
func (s *redisServer) written(ctx context.Context) (commands, changes int64, err error) {
	info := s.client.InfoMap(ctx, "stats", "persistence")
	if err := info.Err(); err != nil {
		return 0, 0, err
	}
	commands, err = strconv.ParseInt(info.Item("Stats", "total_commands_processed"), 10, 64)
	if err != nil {
		return 0, 0, err
	}
	changes, err = strconv.ParseInt(info.Item("Persistence", "rdb_changes_since_last_save"), 10, 64)
	return commands, changes, err
}
