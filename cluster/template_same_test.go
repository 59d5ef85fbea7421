package cluster

import (
	"reflect"
	"testing"
)

// leaves calls each with every field of a template, those of its capacity one by one.
func leaves(v reflect.Value, each func(name string, field reflect.Value)) {
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Struct {
			leaves(v.Field(i), each)
			continue
		}
		each(v.Type().Field(i).Name, v.Field(i))
	}
}

func TestTemplatesThatDifferInOneThingAreNotTheSame(t *testing.T) {
	others := map[reflect.Kind]any{
		reflect.Int64: int64(7), reflect.String: "other", reflect.Slice: []string{"other"}, reflect.Pointer: &Capacity{CPUs: 1},
	}
	var one Template
	leaves(reflect.ValueOf(&one).Elem(), func(name string, field reflect.Value) {
		if field.Kind() == reflect.Map {
			field.Set(reflect.MakeMap(field.Type()))
			field.SetMapIndex(reflect.ValueOf("other"), reflect.Zero(field.Type().Elem()))
		} else {
			field.Set(reflect.ValueOf(others[field.Kind()]).Convert(field.Type()))
		}
		if one.Same(Template{}) || !one.Same(one) {
			t.Errorf("another %s is not seen", name)
		}
		field.SetZero()
	})
}
