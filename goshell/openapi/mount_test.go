package openapi_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/goshell"
	"github.com/pgidem/pgidem/goshell/openapi"
)

const described = `openapi: 3.0.3
info: {title: a, version: "1"}
paths:
  /things/{id}:
    parameters: [&key {name: Idempotency-Key, in: header, required: true, schema: {type: string}}, &id {name: id, in: path, required: true, schema: {type: string}}]
    put:
      operationId: put_thing
      responses: &responses
        4XX: {description: a problem}
        "200": &versioned
          description: ok
          headers: {etag: {schema: {type: string}}, Idempotent-Replay: {schema: {type: string}}}
          content: {application/json: {schema: {required: [version], properties: {version: {type: integer}}}}}
        "201": {description: made, headers: {Idempotent-Replay: {schema: {type: string}}}}
        "202": *versioned
    get:
      operationId: get_thing
      responses: {"200": {description: ok, content: {text/plain: {}}}}
  /things/:
    post:
      parameters: [{name: Idempotency-Key, in: header, schema: {type: string}}]
      responses:
        <<: *responses
        "202": {description: later, headers: {Idempotent-Replay: {schema: {type: string}}}}
        2XX: *versioned
`

func TestOperations_SayWhatTheShellHasToKnow(t *testing.T) {
	operations, err := loadText(t, described, openapi.Options{}).Operations()
	require.NoError(t, err)
	require.Len(t, operations, 3)
	require.Equal(t, openapi.Operation{
		ID: "put_thing", Method: "PUT", Path: "/things/{id}", Keyed: true,
		Shell: goshell.Operation{Action: "put_thing", Required: true, ETag: []int{200, 202}},
	}, operations[0])
	require.Equal(t, openapi.Operation{ID: "get_thing", Method: "GET", Path: "/things/{id}"}, operations[1])

	last := operations[2]
	require.Equal(t, "POST /things/", last.Shell.Action)
	require.False(t, last.Shell.Required)
	require.Len(t, last.Shell.ETag, 98, "2XX stands for all of them but 201 and 202, which are described without one")
	require.NotContains(t, last.Shell.ETag, 201)
	require.NotContains(t, last.Shell.ETag, 202, "its own member wins over that of the merge key")
	require.Contains(t, last.Shell.ETag, 299)
}

func TestMount_ServesWhatIsDescribedAndNothingElse(t *testing.T) {
	operations, err := loadText(t, described, openapi.Options{}).Operations()
	require.NoError(t, err)
	var wrapped []string
	wrap := func(op goshell.Operation, next http.Handler) http.Handler {
		wrapped = append(wrapped, op.Action)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Wrapped", strconv.Itoa(len(op.ETag)))
			next.ServeHTTP(w, r)
		})
	}
	answer := func(id string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(id + " " + r.PathValue("id"))) })
	}
	handlers := map[string]http.Handler{"put_thing": answer("put"), "get_thing": answer("get"), "": answer("post")}
	mux := http.NewServeMux()
	require.NoError(t, openapi.Mount(mux, "/api", operations, wrap, handlers))
	require.Equal(t, []string{"put_thing", "POST /things/"}, wrapped)
	for _, c := range []struct {
		method, path string
		status       int
		body, keyed  string
	}{
		{"PUT", "/api/things/7", 200, "put 7", "2"},
		{"GET", "/api/things/7", 200, "get 7", ""},
		{"POST", "/api/things/", 200, "post ", "98"},
		{"POST", "/api/things/7/8", 404, "", ""},
		{"DELETE", "/api/things/7", 405, "", ""},
		{"PUT", "/things/7", 404, "", ""},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		require.Equal(t, c.status, w.Code, "%s %s", c.method, c.path)
		require.Equal(t, c.keyed, w.Header().Get("Wrapped"))
		if c.status == 200 {
			require.Equal(t, c.body, w.Body.String())
		}
	}

	mux = http.NewServeMux()
	handlers["paint_thing"] = answer("paint")
	require.ErrorContains(t, openapi.Mount(mux, "", operations, wrap, handlers), `the handler "paint_thing" has no operation`)
	delete(handlers, "paint_thing")
	delete(handlers, "get_thing")
	require.ErrorContains(t, openapi.Mount(mux, "", operations, wrap, handlers), `GET /things/{id} has no handler: give one for its operationId "get_thing"`)
	_, pattern := mux.Handler(httptest.NewRequest("PUT", "/things/7", nil))
	require.Empty(t, pattern, "nothing was registered")
}

func TestMount_SaysWhichPathServeMuxCannotServe(t *testing.T) {
	for _, path := range []string{"/a/{thing-id}", "/a/{id}.json", "/a/{id}:cancel"} {
		operations := []openapi.Operation{{ID: "a", Method: "GET", Path: path}}
		err := openapi.Mount(http.NewServeMux(), "", operations, nil, map[string]http.Handler{"a": http.NotFoundHandler()})
		require.ErrorContains(t, err, "ServeMux cannot serve GET "+path)
	}
}
