package operand

import (
	"maps"
	"slices"
)

// LogIns are what plugins log in with at the remote KMS: the content of CredentialSecret when an operator had them started. A plugin that was started
// before the content changed has the old one. The zero value is for plugins that were not started yet; it is not safe for concurrent use.
type LogIns struct {
	content int            // of the Secret, by number (CredentialContent)
	refused map[int]bool   // contents that the KMS does not accept
	started map[string]int // content by the plugin's name, NODE/KEYID
}

// Content is the content that the Secret has, or had before it was removed.
func (l *LogIns) Content() int { return l.content }

// Change gives the Secret a content that no plugin has yet.
func (l *LogIns) Change() { l.content++ }

// Start notes that a plugin is about to be started. It returns whether the KMS refuses its log-ins, and whether that is news to the KMS.
func (l *LogIns) Start(plugin string) (refused, news bool) {
	before, there := l.started[plugin]
	if l.started == nil {
		l.started = map[string]int{}
	}
	l.started[plugin] = l.content
	refused = l.refused[l.content]
	return refused, refused != (there && l.refused[before])
}

// Refuse has the KMS refuse the content that the Secret has, or accept it again, and returns the plugins with it, sorted; none if that is so already.
func (l *LogIns) Refuse(refused bool) (plugins []string) {
	if l.refused[l.content] == refused {
		return nil
	}
	if l.refused == nil {
		l.refused = map[int]bool{}
	}
	l.refused[l.content] = refused
	for _, plugin := range slices.Sorted(maps.Keys(l.started)) {
		if l.started[plugin] == l.content {
			plugins = append(plugins, plugin)
		}
	}
	return plugins
}
