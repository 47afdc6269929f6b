//! Which core provider the environment asks for.

use std::ffi::CString;

/// Providers whose addresses are those of sockets: they are taken where FI_PROVIDER lists them besides this one.
const NETWORKS: [&str; 4] = ["tcp", "verbs", "sockets", "udp"];

/// The name of the core provider that the environment asks for:
/// PERUSAL_FABRIC_CORE, or the first network that FI_PROVIDER lists.
pub fn wanted() -> Option<CString> {
    let own = std::env::var("PERUSAL_FABRIC_CORE").ok().filter(|name| !name.is_empty());
    let name = own.or_else(|| network_of(&std::env::var("FI_PROVIDER").ok()?))?;
    CString::new(name).ok()
}

fn network_of(list: &str) -> Option<String> {
    let is_network = |name: &&str| NETWORKS.contains(&name.split(';').next().unwrap_or_default());
    // A list that begins with ^ says which not to take.
    list.split(',').map(str::trim).find(is_network).filter(|_| !list.starts_with('^')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_network_beside_this_provider_is_its_way_to_other_nodes() {
        let network = |list: &str| network_of(list);
        assert_eq!(network("perusal,tcp").as_deref(), Some("tcp"));
        assert_eq!(network("shm, perusal, verbs;ofi_rxm,tcp").as_deref(), Some("verbs;ofi_rxm"));
        assert_eq!([network("perusal"), network("perusal,shm"), network("^tcp")], [None, None, None]);
    }
}
