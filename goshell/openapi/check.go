package openapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pgidem/pgidem/goshell"
)

// Rule names what a violation breaks.
type Rule string

// The rules. Those of the response statuses, of the header and of its replay can be mended by [Description.Annotate].
const (
	RuleInvalid         Rule = "invalid-description"
	RuleReference       Rule = "unresolved-reference"
	RuleMarker          Rule = "marker"
	RuleReadOnly        Rule = "read-only-method"
	RuleHeaderMissing   Rule = "header-missing"
	RuleHeaderCase      Rule = "header-case"
	RuleHeaderTwice     Rule = "header-twice"
	RuleQuery           Rule = "query-parameter"
	RuleRequestBody     Rule = "request-body-not-json"
	RuleMultipart       Rule = "multipart-body"
	RuleResponseBody    Rule = "response-not-json"
	RuleETag            Rule = "etag-without-version"
	RuleResponseMissing Rule = "response-missing"
	RuleReplayHeader    Rule = "replay-header-missing"
)

// annotated are the rules that Annotate can mend.
var annotated = []Rule{RuleHeaderMissing, RuleResponseMissing, RuleReplayHeader}

// mends says for each rule how to mend a violation of it.
var mends = map[Rule]string{
	RuleInvalid:         "mend the description, any validator of OpenAPI shows the same",
	RuleReference:       "write what the $ref names, or correct it",
	RuleMarker:          "make the marker true, or remove it",
	RuleReadOnly:        "remove the key here: GET, HEAD, OPTIONS, TRACE and QUERY pass through, whatever header they have",
	RuleHeaderMissing:   "run pgidem openapi annotate, or declare the header as a parameter",
	RuleHeaderCase:      "write " + keyHeader + ", as every document and client does",
	RuleHeaderTwice:     "keep one: the names of headers have no case",
	RuleQuery:           "move it into the request body, or take the key off the operation",
	RuleRequestBody:     "take application/json only, or serve the operation in a mode that stores any body (--mode), or without a key",
	RuleMultipart:       "take another media type, or leave the path out (--except) here and in the shell",
	RuleResponseBody:    "answer application/json or no content, or serve the operation in a mode that stores any body (--mode), or without a key",
	RuleETag:            "give the schema a required integer member version, or drop the header: a replay makes the ETag of that member",
	RuleResponseMissing: "run pgidem openapi annotate, or describe the response",
	RuleReplayHeader:    "run pgidem openapi annotate, or declare the header on the response",
}

// Rules returns all rules in the order in which the documents explain them.
func Rules() []Rule {
	return []Rule{RuleInvalid, RuleReference, RuleMarker, RuleReadOnly, RuleHeaderMissing, RuleHeaderCase, RuleHeaderTwice, RuleQuery,
		RuleRequestBody, RuleMultipart, RuleResponseBody, RuleETag, RuleResponseMissing, RuleReplayHeader}
}

// Mend says how to mend what breaks the rule.
func (r Rule) Mend() string { return mends[r] }

// Violation is a place where a description breaks a rule.
type Violation struct {
	File string `json:"file"`
	// Line and Column count from 1, Column in characters.
	Line   int `json:"line"`
	Column int `json:"column"`
	// OperationID, Method and Path tell whose it is. They are empty where the description gives none, or where it is of no operation.
	OperationID string `json:"operation_id,omitempty"`
	Method      string `json:"method,omitempty"`
	Path        string `json:"path,omitempty"`
	Rule        Rule   `json:"rule"`
	// Problem says what is wrong and Mend what to do.
	Problem string `json:"problem"`
	Mend    string `json:"mend"`
}

// Operation names the operation of the violation, or its path. It is empty where it is of none.
func (v Violation) Operation() string {
	name := strings.TrimSpace(v.Method + " " + v.Path)
	if v.OperationID != "" {
		name += " (" + v.OperationID + ")"
	}
	return name
}

// String returns the violation on one line, in the form that editors read: FILE:LINE:COLUMN: text.
func (v Violation) String() string {
	whose := v.Operation()
	if whose != "" {
		whose += ": "
	}
	return fmt.Sprintf("%s:%d:%d: %s%s: %s: %s", v.File, v.Line, v.Column, whose, v.Rule, v.Problem, v.Mend)
}

// Violations is the error of a description that breaks rules.
type Violations []Violation

func (v Violations) Error() string {
	lines := make([]string, len(v))
	for i := range v {
		lines[i] = v[i].String()
	}
	return fmt.Sprintf("openapi: %d violations:\n%s", len(v), strings.Join(lines, "\n"))
}

func (o *operation) violation(at node, rule Rule, format string, args ...any) Violation {
	line, column := at.doc.position(at.Node)
	return Violation{at.doc.name, line, column, o.id, o.method, o.path, rule, fmt.Sprintf(format, args...), rule.Mend()}
}

// Check returns every violation of the description, in the order of its lines.
func (d *Description) Check() Violations {
	all := Violations(slices.Clone(d.problems))
	if d.options.Validate != nil {
		for _, fault := range d.options.Validate(d.main.name, d.main.text) {
			all = append(all, d.invalid(fault))
		}
	}
	for _, o := range d.operations {
		all = append(all, d.checkDeclaration(o)...)
		if o.keyed {
			all = append(all, d.checkRequest(o)...)
			all = append(all, d.checkResponses(o)...)
		}
	}
	slices.SortStableFunc(all, byPosition)
	return slices.Compact(all)
}

// invalid gives a fault the position of its operation.
func (d *Description) invalid(f Fault) Violation {
	for _, o := range slices.Concat(d.operations, d.others) {
		if o.path == f.Path && (o.method == f.Method || f.Method == "") {
			v := o.violation(o.key, RuleInvalid, "%s", f.Problem)
			if f.Method == "" {
				v.OperationID, v.Method = "", ""
			}
			return v
		}
	}
	return (&operation{method: f.Method, path: f.Path}).violation(node{d.main.root, d.main}, RuleInvalid, "%s", f.Problem)
}

// checkDeclaration looks at how an operation says that it is keyed, or that it is not.
func (d *Description) checkDeclaration(o *operation) (all []Violation) {
	report := func(at node, rule Rule, format string, args ...any) {
		all = append(all, o.violation(at, rule, format, args...))
	}
	keys := o.keys()
	if reads(o.method) {
		if o.marked {
			report(o.key, RuleReadOnly, "%s is marked as keyed", o.method)
		}
		for _, p := range keys {
			if p.own { // that of a path is for its other operations
				report(p.at, RuleReadOnly, "%s declares the header %s", o.method, p.name)
			}
		}
		return all
	}
	if marker := o.node.get(d.options.Marker); marker.exists() && !o.marked {
		switch {
		case marker.Tag != "!!bool":
			report(marker, RuleMarker, "%s is %q, which is neither true nor false", d.options.Marker, marker.Value)
		case d.options.EveryMutation && o.keyed:
			report(marker, RuleMarker, "%s is false, but the contract makes every %s keyed", d.options.Marker, o.method)
		case len(keys) > 0:
			report(marker, RuleMarker, "%s is false, but the operation declares the header %s", d.options.Marker, keyHeader)
		}
	}
	if !o.keyed {
		return all
	}
	if len(keys) == 0 {
		report(o.key, RuleHeaderMissing, "the header %s is not declared", keyHeader)
	}
	for i, p := range keys {
		if p.name != keyHeader {
			report(p.at, RuleHeaderCase, "the header is declared as %s", p.name)
		}
		if i > 0 {
			report(p.at, RuleHeaderTwice, "the header %s is declared besides %s", p.name, keys[0].name)
		}
	}
	return all
}

// storesJSON tells whether the mode is the one that stores JSON only.
func (d *Description) storesJSON() bool { return d.options.Mode == goshell.UnitOfWork }

func (d *Description) checkRequest(o *operation) (all []Violation) {
	report := func(at node, rule Rule, format string, args ...any) {
		all = append(all, o.violation(at, rule, format, args...))
	}
	for _, p := range o.parameters {
		if d.options.Contract.Query == goshell.QueryRefused && (p.in == "query" || p.in == "querystring") {
			report(p.at, RuleQuery, "the query parameter %q makes every request with it 400 when it has a key", p.name)
		}
	}
	content := o.body.get("content")
	if d.storesJSON() {
		for _, media := range foreign(content) {
			report(media.at, RuleRequestBody, "the request body may be %s", media.key)
		}
	}
	for _, media := range content.entries() {
		if d.options.Contract.RefuseMultipart && strings.HasPrefix(mediaType(media.key), "multipart/") {
			report(media.at, RuleMultipart, "a request body of %s is refused with a key, since its boundary changes with each try", media.key)
		}
	}
	return all
}

func (d *Description) checkResponses(o *operation) (all []Violation) {
	report := func(at node, rule Rule, format string, args ...any) {
		all = append(all, o.violation(at, rule, format, args...))
	}
	for _, status := range statuses {
		if !o.answers(status) {
			report(o.key, RuleResponseMissing, "the response %s is not described", status)
		}
	}
	for _, r := range o.successes() {
		if d.storesJSON() {
			for _, media := range foreign(r.node.get("content")) {
				report(media.at, RuleResponseBody, "the response %s may be %s", r.code, media.key)
			}
			if etag := r.header("ETag"); etag.exists() && !d.hasVersion(r.node.get("content")) {
				report(r.at, RuleETag, "the response %s declares ETag without a required integer version in its schema", r.code)
			}
		}
		if replay := d.options.Contract.ReplayHeader; !r.header(replay).exists() {
			report(r.at, RuleReplayHeader, "the response %s does not declare the header %s", r.code, replay)
		}
	}
	return all
}

// hasVersion tells whether every JSON body of content has the integer version.
func (d *Description) hasVersion(content node) bool {
	for _, media := range content.entries() {
		if mediaType(media.key) != applicationJSON {
			continue
		}
		value, err := d.resolve(media.value)
		if err != nil {
			return false
		}
		schema := value.get("schema")
		required := func(n node) bool {
			return slices.ContainsFunc(n.get("required").items(), func(name node) bool { return name.text() == "version" })
		}
		integer := func(n node) bool {
			return d.holds(n.get("properties").get("version"), map[node]bool{}, d.isInteger)
		}
		if !d.holds(schema, map[node]bool{}, required) || !d.holds(schema, map[node]bool{}, integer) {
			return false
		}
	}
	return content.exists() && len(foreign(content)) < len(content.entries())
}

// isInteger tells whether a schema takes integers only.
func (d *Description) isInteger(n node) bool {
	types := n.get("type").items()
	if len(types) == 0 {
		types = []node{n.get("type")}
	}
	nullable := d.version30() && n.get("nullable").isTrue()
	return len(types) == 1 && types[0].text() == "integer" && !nullable
}

// holds tells whether a schema, with what it is made of, promises a property. known has what is known of the schemas met
// before, so that circles end.
func (d *Description) holds(schema node, known map[node]bool, property func(node) bool) bool {
	if !schema.isMapping() {
		return false
	}
	if result, ok := known[schema]; ok {
		return result
	}
	known[schema] = false
	result := func() bool {
		if ref := schema.get("$ref"); ref.exists() {
			if target, err := d.target(ref); err == nil && d.holds(target, known, property) {
				return true
			}
			if d.version30() {
				return false
			}
		}
		if property(schema) {
			return true
		}
		one := func(n node) bool { return d.holds(n, known, property) }
		not := func(n node) bool { return !one(n) }
		if slices.ContainsFunc(schema.get("allOf").items(), one) {
			return true
		}
		for _, alternatives := range []string{"oneOf", "anyOf"} {
			if items := schema.get(alternatives).items(); len(items) > 0 && !slices.ContainsFunc(items, not) {
				return true
			}
		}
		return false
	}()
	known[schema] = result
	return result
}

// byPosition orders violations as a reader of the files meets them.
func byPosition(a, b Violation) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}
