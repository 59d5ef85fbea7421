package providers

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

//go:embed schema/*.json
var schemaFiles embed.FS

// Schemas holds the contract's JSON Schemas: VERB.in.json, VERB.out.json, refusal.json and types.json.
func Schemas() fs.FS {
	schemas, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return schemas
}

// ParseIn reads what a script got on stdin into in, for scripts written in Go.
func ParseIn(verb Verb, data []byte, in any) error {
	document, err := parse(data)
	if err != nil {
		return fmt.Errorf("input of %s: %w", verb, err)
	}
	if err := validate(string(verb)+".in.json", document); err != nil {
		return fmt.Errorf("input of %s: %w", verb, err)
	}
	if err := json.Unmarshal(data, in); err != nil {
		return fmt.Errorf("input of %s: %w", verb, err)
	}
	return nil
}

// compiledSchemas compiles on first use, so that a program which never calls a script does not pay.
var compiledSchemas = sync.OnceValue(func() map[string]*jsonschema.Schema {
	schemas, err := compileSchemas()
	if err != nil {
		panic(err) // the schemas are embedded; a test compiles them
	}
	return schemas
})

func compileSchemas() (map[string]*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	entries, err := fs.ReadDir(Schemas(), ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if err := addSchema(compiler, entry.Name()); err != nil {
			return nil, err
		}
	}
	compiled := make(map[string]*jsonschema.Schema, len(entries))
	for _, entry := range entries {
		if compiled[entry.Name()], err = compiler.Compile(schemaURL(entry.Name())); err != nil {
			return nil, err
		}
	}
	return compiled, nil
}

func schemaURL(file string) string { return "https://xce.internal/schema/provider/1/" + file }

func addSchema(compiler *jsonschema.Compiler, file string) error {
	text, err := fs.ReadFile(Schemas(), file)
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("schema %s: %w", file, err)
	}
	return compiler.AddResource(schemaURL(file), document)
}

func validate(file string, document any) error {
	schema, found := compiledSchemas()[file]
	if !found {
		return fmt.Errorf("contract version %d has no message %s", ContractVersion, strings.TrimSuffix(file, ".json"))
	}
	err := schema.Validate(document)
	var faults *jsonschema.ValidationError
	if errors.As(err, &faults) {
		return errors.New(strings.Join(places(faults, message.NewPrinter(language.English)), "; "))
	}
	return err
}

// places lists the innermost faults, each with the place in the document.
func places(fault *jsonschema.ValidationError, printer *message.Printer) []string {
	if len(fault.Causes) == 0 {
		where := "/" + strings.Join(fault.InstanceLocation, "/")
		return []string{"at " + where + ": " + fault.ErrorKind.LocalizedString(printer)}
	}
	var all []string
	for _, cause := range fault.Causes {
		all = append(all, places(cause, printer)...)
	}
	return all
}
