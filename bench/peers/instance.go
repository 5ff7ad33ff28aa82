package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pgidem/pgidem/bench/internal/way"
)

// instance is a running server of a peer.
type instance struct {
	url    string
	stdin  io.Closer
	done   chan struct{}
	errors *bytes.Buffer
}

// start starts a server of the peer. Two with different ids are two processes behind a load balancer.
func (b *bench) start(ctx context.Context, s *subject, id string) (*instance, error) {
	address := ""
	if s.redis != "" {
		address = b.redis[s.redis].address
	}
	var cmd *exec.Cmd
	if s.node {
		folder, err := nodeFolder()
		if err != nil {
			return nil, err
		}
		cmd = exec.Command("node", filepath.Join(folder, "server.js"), s.kind, s.url, address)
		cmd.Env = append(os.Environ(), "NODE_ENV=production", "ANSWER="+string(way.Body(200)))
	} else {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd = exec.Command(self, "serve", s.kind, id, s.url, address)
	}
	i := &instance{done: make(chan struct{}), errors: &bytes.Buffer{}}
	cmd.Stderr = i.errors
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if i.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	go func() { _ = cmd.Wait(); close(i.done) }()
	i.url = strings.TrimSpace(line)
	if readErr != nil {
		i.stop()
		return nil, fmt.Errorf("%s did not start: %s", s.name, i.errors)
	}
	return i, i.ready(ctx)
}

// nodeFolder is where the peers for Node.js lie, with what they need.
func nodeFolder() (string, error) {
	folder := "node"
	if _, err := os.Stat(filepath.Join(folder, "node_modules")); err != nil {
		return "", errors.New("the peers for Node.js are not installed: run `npm ci` in bench/peers/node, and this command in bench/peers")
	}
	return folder, nil
}

func (i *instance) ready(ctx context.Context) error {
	var err error
	for range 500 {
		if _, err = i.runs(ctx); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("the server does not answer: %w: %s", err, i.errors)
}

func (i *instance) stop() {
	_ = i.stdin.Close()
	<-i.done
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}, Timeout: time.Minute}

// runs is how often the handler ran.
func (i *instance) runs(ctx context.Context) (int, error) {
	_, text, err := send(ctx, "GET", i.url+"/runs", "")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// post makes a request with a key; conduct are headers for the handler.
func (i *instance) post(ctx context.Context, key string, conduct ...string) (status int, body string, err error) {
	status, body, err = send(ctx, "POST", i.url+"/payments", key, conduct...)
	if err != nil {
		select {
		case <-i.done:
			err = fmt.Errorf("%w: the server has ended: %s", err, i.errors)
		case <-time.After(time.Second):
		}
	}
	return status, body, err
}

func send(ctx context.Context, method, url, key string, conduct ...string) (status int, body string, err error) {
	var content io.Reader
	if method == "POST" {
		content = strings.NewReader(`{"amount": 1250}`)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return 0, "", err
	}
	r.GetBody = nil // or the transport would repeat a request with an Idempotency-Key by itself
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
		r.Header.Set("Content-Type", "application/json")
	}
	for _, name := range conduct {
		r.Header.Set(name, "1")
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}
