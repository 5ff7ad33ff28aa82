package openapi

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// Annotate returns the text of the description with what its keyed operations lack: the header Idempotency-Key, the replay
// header on the responses of a success, and the responses 400, 409 and 422. It only inserts text, so comments, order,
// anchors and style stay; a description that lacks nothing comes back as it is. What it returns passes Check.
//
// The error is of the type [Violations] where the description breaks rules that no addition mends, or what is missing belongs
// into another file. Other errors name a place that takes no addition, or an operation without a key that would be changed too,
// because it shares a part by an anchor.
func (d *Description) Annotate() ([]byte, error) {
	found := d.Check()
	var others Violations
	for _, v := range found {
		if !slices.Contains(annotated, v.Rule) {
			others = append(others, v)
		}
	}
	if len(others) > 0 {
		return nil, others
	}
	if len(found) == 0 {
		return d.main.text, nil
	}

	additions, refused := d.plan()
	if len(refused) > 0 {
		return nil, refused
	}
	if err := d.checkShared(additions); err != nil {
		return nil, err
	}
	text, err := d.main.insert(additions)
	if err != nil {
		return nil, err
	}
	after, err := load(d.main.name, text, d.options)
	if err != nil {
		return nil, err
	}
	if err := d.checkOthers(after); err != nil {
		return nil, err
	}
	if left := after.Check(); len(left) > 0 {
		return nil, left
	}
	return text, nil
}

// place is where a reference is added.
type place struct {
	to       *yaml.Node
	key, ref string
}

// plan collects what is missing.
func (d *Description) plan() ([]addition, Violations) {
	var (
		all     []addition
		refused Violations
		used    = map[string]bool{}
		planned = map[place]bool{}
	)
	// add plans a member once, though several operations may need it in one place.
	add := func(o *operation, to node, rule Rule, key string, value any, refs ...string) {
		switch {
		case to.doc != d.main:
			v := o.violation(to, rule, "%s cannot be added", refs[0])
			v.Mend = "it belongs into this file: add it there by hand"
			refused = append(refused, v)
		case !planned[place{to.Node, key, refs[0]}]:
			planned[place{to.Node, key, refs[0]}] = true
			all = append(all, addition{to.Node, member{key, value}})
			for _, ref := range refs {
				used[ref] = true
			}
		}
	}

	name, _ := d.keyComponent()
	key := reference{"#/components/parameters/" + name}
	replay := reference{"#/components/headers/" + d.options.replayName()}
	for _, o := range d.operations {
		if !o.keyed {
			continue
		}
		if len(o.keys()) == 0 {
			if list := o.node.get("parameters"); list.exists() {
				add(o, list, RuleHeaderMissing, "", key, key.Ref)
			} else {
				add(o, o.node, RuleHeaderMissing, "parameters", []reference{key}, key.Ref)
			}
		}
		d.planResponses(o, add)
		for _, r := range o.successes() {
			header := d.options.Contract.ReplayHeader
			if r.header(header).exists() {
				continue
			}
			if headers := r.node.get("headers"); headers.exists() {
				add(o, headers, RuleReplayHeader, header, replay, replay.Ref)
			} else {
				add(o, r.node, RuleReplayHeader, "headers", map[string]reference{header: replay}, replay.Ref)
			}
		}
	}
	return append(all, d.components(used)...), refused
}

func (d *Description) planResponses(o *operation, add func(o *operation, to node, rule Rule, key string, value any, refs ...string)) {
	missing := map[string]reference{}
	var refs []string
	responses := o.node.get("responses")
	for _, status := range statuses {
		if o.answers(status) {
			continue
		}
		ref := "#/components/responses/" + responseNames[status]
		if responses.exists() {
			add(o, responses, RuleResponseMissing, status, reference{ref}, ref)
		}
		missing[status] = reference{ref}
		refs = append(refs, ref)
	}
	if !responses.exists() {
		add(o, o.node, RuleResponseMissing, "responses", missing, refs...)
	}
}

// checkShared makes sure that nothing is added to a part that an anchor gives to somebody else, too: an operation without a
// key, a webhook or a callback.
func (d *Description) checkShared(additions []addition) error {
	targets, keyed := map[*yaml.Node]bool{}, map[*yaml.Node]bool{}
	for _, a := range additions {
		targets[a.to] = true
	}
	for _, o := range d.operations {
		if o.keyed {
			keyed[o.node.Node] = true
		}
	}
	type visit struct {
		node   *yaml.Node
		theirs bool
	}
	seen := map[visit]bool{}
	// theirs says whose the node is when it is not that of keyed operations.
	var walk func(n *yaml.Node, theirs string) error
	walk = func(n *yaml.Node, theirs string) error {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if keyed[n] {
			theirs = ""
		}
		if seen[visit{n, theirs != ""}] {
			return nil
		}
		seen[visit{n, theirs != ""}] = true
		if theirs != "" && targets[n] {
			return d.sharedError(theirs)
		}
		if n.Kind != yaml.MappingNode {
			for _, item := range n.Content {
				if err := walk(item, theirs); err != nil {
					return err
				}
			}
			return nil
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value, whose := n.Content[i].Value, n.Content[i+1], theirs
			switch {
			case key == "callbacks":
				whose = "a callback"
			case n == d.main.root && key == "webhooks":
				whose = "a webhook"
			}
			if err := walk(value, whose); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(d.main.root, ""); err != nil {
		return err
	}
	for _, o := range slices.Concat(d.operations, d.others) {
		if !o.keyed && o.node.doc == d.main {
			if err := walk(o.node.Node, o.method+" "+o.path+", which has no key,"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Description) sharedError(whose string) error {
	return fmt.Errorf("openapi: %s cannot be annotated: %s would change too, since it shares a part by an anchor: "+
		"give one of the operations a part of its own", d.main.name, whose)
}

// checkOthers makes sure that nothing new is said of the operations without a key. A replay header may be, where they share a
// response with others: it is absent from their answers, as the description of the header says.
func (d *Description) checkOthers(after *Description) error {
	now := slices.Concat(after.operations, after.others)
	for i, o := range slices.Concat(d.operations, d.others) {
		if !o.keyed && !o.saysAsMuch(now[i]) {
			return d.sharedError(o.method + " " + o.path + ", which has no key,")
		}
	}
	return nil
}

func (o *operation) saysAsMuch(other *operation) bool {
	return o.keyed == other.keyed &&
		slices.EqualFunc(o.parameters, other.parameters, func(a, b parameter) bool { return a.name == b.name && a.in == b.in }) &&
		slices.EqualFunc(o.responses, other.responses, func(a, b response) bool { return a.code == b.code })
}
