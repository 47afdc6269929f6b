//! Enumerations: the names behind the values of variables that are a choice or a state (MPI 5.0 §15.3.5).

/// One named value of an enumeration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnumerationItem {
    /// What people call it; unique in its enumeration.
    pub name: &'static str,
    /// What a variable of type MPI_INT has for it.
    pub value: i32,
}

/// A set of named values.
#[derive(Debug, PartialEq, Eq)]
pub struct Enumeration {
    /// Its name; unique among all.
    pub name: &'static str,
    /// At least one.
    pub items: &'static [EnumerationItem],
}

impl Enumeration {
    /// The item of that name; a number stands for the item that has it as its value.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<EnumerationItem> {
        let by_name = self.items.iter().find(|item| item.name.eq_ignore_ascii_case(text));
        by_name.or_else(|| self.of_value(text.parse().ok()?)).copied()
    }

    fn of_value(&self, value: i32) -> Option<&EnumerationItem> {
        self.items.iter().find(|item| item.value == value)
    }

    /// The name of a value.
    #[must_use]
    pub fn name_of(&self, value: i32) -> Option<&'static str> {
        self.of_value(value).map(|item| item.name)
    }

    /// All names, as the end of a sentence: "auto, chunks or read".
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.items.iter().map(|item| item.name).collect();
        match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
            None => String::new(),
        }
    }
}

/// Off or on.
pub static SWITCH: Enumeration = Enumeration {
    name: "switch",
    items: &[EnumerationItem { name: "off", value: 0 }, EnumerationItem { name: "on", value: 1 }],
};

/// Which calls are checked, and how ([`CHECK_STRICT`] is the last one).
pub static CHECKS: Enumeration = Enumeration {
    name: "checks",
    items: &[
        EnumerationItem { name: "off", value: 0 },
        EnumerationItem { name: "on", value: 1 },
        EnumerationItem { name: "strict", value: CHECK_STRICT as i32 },
    ],
};

/// Besides what is checked, blocking collective calls wait for all members.
pub const CHECK_STRICT: u64 = 2;

/// Defines an enum and its [`Enumeration`], a line for each item. Items have the values 0, 1 … in their order; the
/// first one also stands for every number that is no item's.
macro_rules! choices {
    ($(#[$about:meta])* $type:ident, $table:ident = $name:literal {
        $(#[$first_about:meta])* $first:ident $first_name:literal,
        $($(#[$item_about:meta])* $item:ident $item_name:literal),* $(,)?
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, num_enum::FromPrimitive)]
        #[repr(u64)]
        pub enum $type {
            $(#[$first_about])* #[num_enum(default)] $first,
            $($(#[$item_about])* $item),*
        }

        impl $type {
            /// Returns the item of a variable's value.
            #[inline]
            #[must_use]
            pub fn of(number: u64) -> Self {
                num_enum::FromPrimitive::from_primitive(number)
            }
        }

        $(#[$about])*
        pub static $table: $crate::variables::enumeration::Enumeration = $crate::variables::enumeration::Enumeration {
            name: $name,
            items: &[
                $crate::variables::enumeration::EnumerationItem { name: $first_name, value: $type::$first as i32 },
                $($crate::variables::enumeration::EnumerationItem { name: $item_name, value: $type::$item as i32 }),*
            ],
        };
    };
}
pub(crate) use choices;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_found_by_name_in_any_case_and_by_value() {
        assert_eq!(SWITCH.find("On").map(|item| item.value), Some(1));
        assert_eq!(SWITCH.find("0").map(|item| item.name), Some("off"));
        assert_eq!(SWITCH.find("2"), None);
        assert_eq!(SWITCH.find("maybe"), None);
        assert_eq!(SWITCH.names(), "off or on");
    }
}
