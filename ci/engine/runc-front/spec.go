package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
)

// rewriteFile changes a spec in place, or leaves it alone if there is nothing to change.
func rewriteFile(path string, kind specKind, l limits) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := rewrite(old, kind, l)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, info.Mode().Perm())
}

// rewrite takes out of a spec what the host cannot grant. What it has no opinion on stays as it is, big numbers included.
func rewrite(text []byte, kind specKind, l limits) ([]byte, error) {
	var spec map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&spec); err != nil {
		return nil, err
	}
	process := spec
	if kind == containerSpec {
		process, _ = spec["process"].(map[string]any)
	}
	if process != nil {
		fixCapabilities(process, l)
		fixOOMScore(process, l)
		fixLimits(process, l)
	}
	return json.Marshal(spec)
}

func fixCapabilities(process map[string]any, l limits) {
	sets, _ := process["capabilities"].(map[string]any)
	for name, set := range sets {
		list, ok := set.([]any)
		if !ok {
			continue
		}
		sets[name] = slices.DeleteFunc(list, func(c any) bool {
			text, ok := c.(string)
			return ok && !l.grants(text)
		})
	}
}

func fixOOMScore(process map[string]any, l limits) {
	number, ok := process["oomScoreAdj"].(json.Number)
	if !ok {
		return
	}
	if score, err := number.Int64(); err == nil && score < l.oomScore {
		process["oomScoreAdj"] = l.oomScore
	}
}

func fixLimits(process map[string]any, l limits) {
	list, _ := process["rlimits"].([]any)
	for _, entry := range list {
		limit, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		name, _ := limit["type"].(string)
		if highest, known := l.hard(name); known {
			lower(limit, "hard", highest)
			lower(limit, "soft", highest)
		}
	}
}

// lower caps a number of 64 bits without a sign; the highest of them means no limit.
func lower(limit map[string]any, key string, highest uint64) {
	number, ok := limit[key].(json.Number)
	if !ok || highest == math.MaxUint64 {
		return
	}
	if value, err := strconv.ParseUint(number.String(), 10, 64); err == nil && value > highest {
		limit[key] = highest
	}
}
