package live

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// reloadMetric names the configuration that an API server has loaded, by the SHA-256 of its file.
const reloadMetric = "apiserver_encryption_config_controller_last_config_info{"

// awaitReload returns when the API servers of the nodes have loaded the configuration that was written last. One that
// rejects it (a new provider whose plugin is dead) keeps the old one silently, and runs into the bound.
func (e *Environment) awaitReload(ctx context.Context, nodes []*Node) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		e.mu.Lock()
		hash := e.reloads[n.Name]
		e.mu.Unlock()
		if hash == "" {
			continue
		}
		group.Go(func() error {
			if err := n.awaitReload(ctx, hash); err != nil {
				return err
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.reloads[n.Name] == hash {
				delete(e.reloads, n.Name)
			}
			return nil
		})
	}
	return group.Wait()
}

func (n *Node) awaitReload(ctx context.Context, hash string) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	ticker := time.NewTicker(reloadPoll)
	defer ticker.Stop()
	for {
		loaded, err := n.loadedConfig(ctx)
		if err == nil && loaded == hash {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("the API server of %s did not load its new encryption configuration within %v (it names %q, %v): see its log", n.Name, reloadTimeout, loaded, err)
		}
	}
}

func (n *Node) loadedConfig(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.Admin.url+"/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := n.Admin.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if hash, ok := hashOf(lines.Text()); ok {
			return hash, nil
		}
	}
	return "", lines.Err()
}

// hashOf reads the hash out of a line of the metrics, if it is that metric's.
func hashOf(line string) (hash string, ok bool) {
	labels, ok := strings.CutPrefix(line, reloadMetric)
	if !ok {
		return "", false
	}
	_, hash, _ = strings.Cut(labels, `,hash="`)
	hash, _, _ = strings.Cut(hash, `"`)
	return hash, true
}
