package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
)

// kindModule is the version of kind that go.mod names, on this machine.
type kindModule struct{ Version, Sum, Dir string }

func downloadKind(ctx context.Context) (kindModule, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", "sigs.k8s.io/kind").Output()
	if err != nil {
		return kindModule{}, fmt.Errorf("download kind's Go module: %w; is GOPROXY reachable?", err)
	}
	var m kindModule
	if err := json.Unmarshal(out, &m); err != nil || m.Dir == "" {
		return kindModule{}, fmt.Errorf("download kind's Go module: unexpected answer %.200q (%w)", out, err)
	}
	return m, nil
}

// balancerImage is the name under which kind looks for its load balancer. kind keeps it in an internal package, so it is read
// from the source.
func (m kindModule) balancerImage() (string, error) {
	path := filepath.Join(m.Dir, "pkg", "cluster", "internal", "loadbalancer", "const.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return "", fmt.Errorf("read the name of kind's load balancer image: %w", err)
	}
	if name := constant(file, "Image"); name != "" {
		return name, nil
	}
	return "", fmt.Errorf("read the name of kind's load balancer image: no constant Image in %s of kind %s", path, m.Version)
}

// constant is the value of a string constant of a file, or nothing.
func constant(file *ast.File, name string) (value string) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && spec.Names[0].Name == name && len(spec.Values) == 1 {
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, _ = strconv.Unquote(literal.Value)
			}
		}
		return value == ""
	})
	return value
}
