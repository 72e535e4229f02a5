//! Tables of many records, which the build script writes as bytes: the same records as Rust literals take the compiler
//! most of a minute.
//!
//! Invariants: a file of another length than its table's does not compile, and neither does a record with padding or with
//! a field that does not allow every bit pattern.

#[cfg(target_endian = "big")]
compile_error!("the tables are written with the lowest byte of a number first");

/// Defines a struct that is a record of a file: its fields one after another.
macro_rules! record {
    (
        $(#[$attribute:meta])*
        $visible:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field_visible:vis $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy)]
        #[repr(C)]
        $visible struct $name {
            $($(#[$field_attribute])* $field_visible $field: $type,)*
        }

        // SAFETY: 0 is a value of every field, because every field allows every bit pattern (checked below).
        #[allow(unsafe_code, reason = "the trait is a promise about the layout")]
        unsafe impl bytemuck::Zeroable for $name {}
        // SAFETY: the fields are in the order of their definition, without padding, and every field is plain old data:
        // the compiler checks the latter two here.
        #[allow(unsafe_code, reason = "the trait is a promise about the layout")]
        unsafe impl bytemuck::Pod for $name {}
        const _: () = {
            const fn check<T: bytemuck::Pod>() -> usize {
                size_of::<T>()
            }
            assert!(size_of::<$name>() == 0 $(+ check::<$type>())*, "a record with padding");
        };
    };
}

/// The records in a file of the build script.
macro_rules! table {
    ($file:literal) => {
        bytemuck::must_cast(*include_bytes!(concat!(env!("OUT_DIR"), "/", $file)))
    };
    // The same, each converted to a type that does not allow every bit pattern.
    ($file:literal, $count:literal, $data:ty => $convert:path) => {{
        static DATA: [$data; $count] = table!($file);
        let mut records = [$convert(&DATA[0]); $count];
        let mut number = 1;
        while number < $count {
            records[number] = $convert(&DATA[number]);
            number += 1;
        }
        records
    }};
}

pub(crate) use {record, table};
