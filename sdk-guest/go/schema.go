package wharf

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// schema is a JSON Schema whose members have an order, because clients show fields in the order of the struct.
type schema struct {
	members []member
}

type member struct {
	key   string
	value any
}

func (s *schema) set(key string, value any) {
	for at := range s.members {
		if s.members[at].key == key {
			s.members[at].value = value
			return
		}
	}
	s.members = append(s.members, member{key, value})
}

func (s *schema) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	for at, member := range s.members {
		if at > 0 {
			text.WriteByte(',')
		}
		key, err := json.Marshal(member.key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(member.value)
		if err != nil {
			return nil, err
		}
		text.Write(key)
		text.WriteByte(':')
		text.Write(value)
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// deriver derives schemas from types. Inner types are inlined, except recursive ones.
type deriver struct {
	open      []reflect.Type
	recursive map[reflect.Type]string
	defs      *schema
}

// schemaOf returns the JSON Schema of a type, by its fields and their tags. Many clients support only a simple subset of JSON Schema, so
// each value has one type; an optional member is left out of required, and its type does not allow null.
func schemaOf(of reflect.Type) (text string, err error) {
	maker := deriver{recursive: map[reflect.Type]string{}, defs: &schema{}}
	made, err := maker.of(of)
	if err != nil {
		return "", err
	}
	if len(maker.defs.members) > 0 {
		made.set("$defs", maker.defs)
	}
	return encode(made), nil
}

// argumentsSchema returns the schema of a tool's arguments. It always has properties, because some clients access that member without
// checking whether it exists.
func argumentsSchema(of reflect.Type) (string, error) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct && of.Kind() != reflect.Map {
		return "", fmt.Errorf("its arguments are a %s; they must be a struct, or any type with Details.InputSchema", of)
	}
	return schemaOf(of)
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	textType      = reflect.TypeFor[encoding.TextMarshaler]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
)

func (d *deriver) of(of reflect.Type) (*schema, error) {
	made := &schema{}
	switch {
	case of.Kind() == reflect.Pointer:
		return d.of(of.Elem())
	case of == timeType:
		made.set("type", "string")
		made.set("format", "date-time")
		return made, nil
	case of == rawType:
		return made, nil
	case of.Implements(marshalerType) || reflect.PointerTo(of).Implements(marshalerType):
		// The type has its own MarshalJSON, so its JSON can be anything.
		return made, nil
	case of.Implements(textType) || reflect.PointerTo(of).Implements(textType):
		made.set("type", "string")
		return made, nil
	}
	switch of.Kind() {
	case reflect.Bool:
		made.set("type", "boolean")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		made.set("type", "integer")
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		made.set("type", "integer")
		made.set("minimum", 0)
	case reflect.Float32, reflect.Float64:
		made.set("type", "number")
	case reflect.String:
		made.set("type", "string")
	case reflect.Interface:
		// An empty schema allows any value.
	case reflect.Slice, reflect.Array:
		if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8 {
			made.set("type", "string")
			made.set("contentEncoding", "base64")
			return made, nil
		}
		items, err := d.of(of.Elem())
		if err != nil {
			return nil, err
		}
		made.set("type", "array")
		made.set("items", items)
	case reflect.Map:
		if of.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("%s has keys that are not strings", of)
		}
		values, err := d.of(of.Elem())
		if err != nil {
			return nil, err
		}
		made.set("type", "object")
		made.set("additionalProperties", values)
	case reflect.Struct:
		return d.structure(of)
	default:
		return nil, fmt.Errorf("JSON has no %s", of)
	}
	return made, nil
}

func (d *deriver) structure(of reflect.Type) (*schema, error) {
	for _, one := range d.open {
		if one == of {
			d.recursive[of] = "#/$defs/" + of.Name()
			return &schema{[]member{{"$ref", d.recursive[of]}}}, nil
		}
	}
	d.open = append(d.open, of)
	properties, required := &schema{}, []string{}
	if err := d.fields(of, properties, &required); err != nil {
		return nil, err
	}
	d.open = d.open[:len(d.open)-1]
	made := &schema{[]member{{"type", "object"}, {"properties", properties}}}
	if len(required) > 0 {
		made.set("required", required)
	}
	if reference, found := d.recursive[of]; found {
		d.defs.set(of.Name(), made)
		// The root stays an object, because a tool's schema must be one.
		if len(d.open) > 0 {
			return &schema{[]member{{"$ref", reference}}}, nil
		}
		return &schema{append([]member{}, made.members...)}, nil
	}
	return made, nil
}

func (d *deriver) fields(of reflect.Type, properties *schema, required *[]string) error {
	for at := range of.NumField() {
		field := of.Field(at)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				if err := d.fields(inner, properties, required); err != nil {
					return err
				}
				continue
			}
		}
		if !field.IsExported() || name == "-" && options == "" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		made, err := d.of(field.Type)
		if err == nil {
			err = tags(made, field)
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w", of.Name(), field.Name, err)
		}
		properties.set(name, made)
		isOptional := field.Type.Kind() == reflect.Pointer
		for option := range strings.SplitSeq(options, ",") {
			isOptional = isOptional || option == "omitempty" || option == "omitzero"
		}
		if !isOptional {
			*required = append(*required, name)
		}
	}
	return nil
}

// The keywords that a tag of the same name sets, by the kind of their values.
var (
	textKeywords  = []string{"title", "description", "pattern", "format"}
	countKeywords = []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
	boundKeywords = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
)

func tags(made *schema, field reflect.StructField) error {
	for _, key := range textKeywords {
		if text, found := field.Tag.Lookup(key); found {
			made.set(key, text)
		}
	}
	for _, key := range countKeywords {
		if text, found := field.Tag.Lookup(key); found {
			count, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				return fmt.Errorf("the tag %s is %q; it must be a whole number", key, text)
			}
			made.set(key, count)
		}
	}
	for _, key := range boundKeywords {
		if text, found := field.Tag.Lookup(key); found {
			bound, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("the tag %s is %q; it must be a number", key, text)
			}
			made.set(key, bound)
		}
	}
	if text, found := field.Tag.Lookup("enum"); found {
		// For a list, the enum applies to its items.
		to, kind := made, valueType(field.Type)
		if kind.Kind() == reflect.Slice || kind.Kind() == reflect.Array {
			kind = valueType(kind.Elem())
			for _, member := range made.members {
				if items, ok := member.value.(*schema); ok && member.key == "items" {
					to = items
				}
			}
		}
		var values []any
		for one := range strings.SplitSeq(text, ",") {
			value, err := literal(strings.TrimSpace(one), kind)
			if err != nil {
				return fmt.Errorf("the tag enum has the value %q; the field is a %s", one, kind)
			}
			values = append(values, value)
		}
		to.set("enum", values)
	}
	if text, found := field.Tag.Lookup("default"); found {
		value, err := literal(text, valueType(field.Type))
		if err != nil {
			return fmt.Errorf("the tag default is %q; the field is a %s", text, valueType(field.Type))
		}
		made.set("default", value)
	}
	if text, found := field.Tag.Lookup("schema"); found {
		var more map[string]json.RawMessage
		if err := decode(text, &more); err != nil {
			return fmt.Errorf("the tag schema is not a JSON object: %w", err)
		}
		for _, key := range sortedKeys(more) {
			made.set(key, more[key])
		}
	}
	return nil
}

func valueType(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}

// literal converts the text of a tag to a value of the field's type: strings unchanged, everything else parsed as JSON.
func literal(text string, of reflect.Type) (any, error) {
	if of.Kind() == reflect.String {
		return text, nil
	}
	value := reflect.New(of)
	if err := decode(text, value.Interface()); err != nil {
		return nil, err
	}
	return json.RawMessage(text), nil
}
