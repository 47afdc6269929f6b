//! What a node of the tests does with addresses: its own name, and those of others in its address vector.

use super::*;

impl Node {
    /// An endpoint whose address vector has identifiers of the caller's (FI_AV_USER_ID).
    pub fn with_own_ids(caps: u64) -> Node {
        let info = info(caps).expect("an offer");
        let node = Self::bound_with(info, FI_SEND | FI_RECV, FI_AV_USER_ID).expect("an endpoint");
        node.enable();
        node
    }

    /// fi_av_insert with an identifier for the address. Returns what the call says, and the number.
    pub fn insert_as(&self, name: &str, id: u64) -> (c_int, u64) {
        let (text, mut number) = (CString::new(name).expect("a text"), id);
        let insert: unsafe extern "C" fn(*mut Fid, *const u8, usize, *mut u64, u64, *mut c_void) -> c_int =
            function(self.av, 0, 0);
        let at = text.as_ptr().cast();
        // SAFETY: one address, and a place for its number.
        let said = unsafe { insert(self.av, at, 1, &raw mut number, FI_AV_USER_ID, null_mut()) };
        (said, number)
    }

    /// fi_av_set_user_id. Returns its error.
    pub fn set_user_id(&self, number: u64, id: u64, flags: u64) -> c_int {
        let set: unsafe extern "C" fn(*mut Fid, u64, u64, u64) -> c_int = function(self.av, 0, 9);
        // SAFETY: an address vector.
        unsafe { set(self.av, number, id, flags) }
    }

    pub fn name(&self) -> String {
        let (mut bytes, mut len) = ([0_u8; 64], 64);
        let getname: unsafe extern "C" fn(*mut Fid, *mut u8, *mut usize) -> c_int = function(self.ep, 1, 1);
        // SAFETY: 64 bytes, as said.
        assert_eq!(unsafe { getname(self.ep, bytes.as_mut_ptr(), &raw mut len) }, 0);
        String::from_utf8(bytes[..len - 1].to_vec()).expect("text")
    }

    /// Inserts an address. Returns what the vector calls it.
    pub fn insert(&self, name: &str) -> u64 {
        self.try_insert(name).expect("an address")
    }

    /// Inserts an address.
    ///
    /// # Errors
    ///
    /// The number of the error, positive.
    pub fn try_insert(&self, name: &str) -> Result<u64, c_int> {
        const FI_SYNC_ERR: u64 = 1 << 58;
        let mut error: c_int = -1;
        let bytes: Vec<u8> = name.bytes().chain([0]).collect();
        let mut number = 0;
        let insert: unsafe extern "C" fn(*mut Fid, *const u8, usize, *mut u64, u64, *mut c_void) -> c_int =
            function(self.av, 0, 0);
        // SAFETY: one address, a place for its number and one for its error.
        let inserted = unsafe {
            insert(self.av, bytes.as_ptr(), 1, &raw mut number, FI_SYNC_ERR, (&raw mut error).cast())
        };
        assert_eq!((inserted == 1, number == FI_ADDR_NOTAVAIL), (error == 0, error != 0));
        if error == 0 { Ok(number) } else { Err(error) }
    }

    /// fi_av_insertsvc.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn insert_service(&self, node: &CStr, service: &CStr) -> Result<u64, c_int> {
        type Insert =
            unsafe extern "C" fn(*mut Fid, *const c_char, *const c_char, *mut u64, u64, *mut c_void) -> c_int;
        let mut number = 0;
        // SAFETY: C strings, and a place for the number.
        let inserted = unsafe {
            function::<Insert>(self.av, 0, 1)(
                self.av,
                node.as_ptr(),
                service.as_ptr(),
                &raw mut number,
                0,
                null_mut(),
            )
        };
        if inserted == 1 { Ok(number) } else { Err(inserted) }
    }

    /// The address behind a number of the vector's.
    pub fn lookup(&self, number: u64) -> String {
        let (mut bytes, mut len) = ([0_u8; 64], 64);
        let lookup: unsafe extern "C" fn(*mut Fid, u64, *mut u8, *mut usize) -> c_int =
            function(self.av, 0, 4);
        // SAFETY: 64 bytes, as said.
        assert_eq!(unsafe { lookup(self.av, number, bytes.as_mut_ptr(), &raw mut len) }, 0);
        String::from_utf8(bytes[..len - 1].to_vec()).expect("text")
    }

    /// fi_av_remove.
    pub fn remove(&self, number: u64) {
        let remove: unsafe extern "C" fn(*mut Fid, *const u64, usize, u64) -> c_int = function(self.av, 0, 3);
        // SAFETY: one number.
        assert_eq!(unsafe { remove(self.av, &raw const number, 1, 0) }, 0);
    }
}
