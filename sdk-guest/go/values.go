package wharf

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

func sortedKeys[V any](of map[string]V) []string {
	return slices.Sorted(maps.Keys(of))
}

// filled returns a copy of a value in which nil slices and maps are replaced by empty ones.
func filled(value any) any {
	if value == nil {
		return nil
	}
	from := reflect.ValueOf(value)
	to := reflect.New(from.Type()).Elem()
	to.Set(from)
	fill(to)
	return to.Interface()
}

func fill(value reflect.Value) {
	if value.Type().Implements(marshalerType) || reflect.PointerTo(value.Type()).Implements(marshalerType) {
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		for at := range value.NumField() {
			if field := value.Field(at); field.CanSet() {
				fill(field)
			}
		}
	case reflect.Pointer:
		if !value.IsNil() {
			inner := reflect.New(value.Type().Elem())
			inner.Elem().Set(value.Elem())
			fill(inner.Elem())
			value.Set(inner)
		}
	case reflect.Slice:
		filled := reflect.MakeSlice(value.Type(), value.Len(), value.Len())
		reflect.Copy(filled, value)
		for at := range filled.Len() {
			fill(filled.Index(at))
		}
		value.Set(filled)
	case reflect.Map:
		filled := reflect.MakeMapWithSize(value.Type(), value.Len())
		for entries := value.MapRange(); entries.Next(); {
			inner := reflect.New(value.Type().Elem()).Elem()
			inner.Set(entries.Value())
			fill(inner)
			filled.SetMapIndex(entries.Key(), inner)
		}
		value.Set(filled)
	case reflect.Interface:
		if !value.IsNil() {
			value.Set(reflect.ValueOf(filled(value.Interface())))
		}
	}
}

var _ json.Marshaler = (*schema)(nil)
