//! The write-ahead log of a database in WAL mode: where in it the newest version of each changed page lies. SQLite itself finds that through
//! memory that programs share, which does not exist here. The format is described at <https://sqlite.org/fileformat2.html#walformat>.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom},
};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The committed changes in a log.
pub struct Log {
    file: File,
    page_bytes: u64,
    /// The length of the database in bytes.
    pub length: u64,
    /// Where the content of pages begins in the file, by the number of the page.
    pages: HashMap<u64, u64>,
}

impl Log {
    /// Reads a log up to its last committed transaction. Returns `None` if it has none.
    pub fn of(file: File) -> io::Result<Option<Self>> {
        let mut input = BufReader::new(file);
        let mut header = [0; HEADER];
        if !filled(&mut input, &mut header)? {
            return Ok(None);
        }
        let [magic, _, page_bytes, _, first_salt, second_salt, first_sum, second_sum] = numbers(&header);
        // SQLite ignores logs with a wrong header too.
        if magic & !1 != 0x377f_0682 || !page_bytes.is_power_of_two() || !(512..=65536).contains(&page_bytes) {
            return Ok(None);
        }
        let is_big = magic & 1 == 1;
        let mut sums = summed([0, 0], header.split_at(24).0, is_big);
        if sums != [first_sum, second_sum] {
            return Ok(None);
        }
        let (mut frame, mut at) = (vec![0; FRAME_HEADER + page_bytes as usize], HEADER as u64);
        let (mut pages, mut begun, mut length) = (HashMap::new(), HashMap::new(), None);
        while filled(&mut input, &mut frame)? {
            let (head, content) = frame.split_at(FRAME_HEADER);
            let [page, committed, first, second, first_sum, second_sum] = numbers(head);
            sums = summed(summed(sums, head.split_at(8).0, is_big), content, is_big);
            // What follows belongs to an earlier use of the log.
            if [first, second] != [first_salt, second_salt] || sums != [first_sum, second_sum] {
                break;
            }
            begun.insert(u64::from(page), at + FRAME_HEADER as u64);
            if committed != 0 {
                pages.extend(begun.drain());
                length = Some(u64::from(committed) * u64::from(page_bytes));
            }
            at += frame.len() as u64;
        }
        let page_bytes = u64::from(page_bytes);
        Ok(length.map(|length| Self { file: input.into_inner(), page_bytes, length, pages }))
    }

    /// Reads a part of a page. Returns whether the page is in the log.
    pub fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<bool> {
        let Some(page) = self.pages.get(&(at / self.page_bytes + 1)) else { return Ok(false) };
        let within = at % self.page_bytes;
        if within + into.len() as u64 > self.page_bytes {
            return Err(ErrorKind::InvalidInput.into());
        }
        self.file.seek(SeekFrom::Start(page + within))?;
        self.file.read_exact(into)?;
        Ok(true)
    }
}

fn filled(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn numbers<const COUNT: usize>(bytes: &[u8]) -> [u32; COUNT] {
    let mut words = bytes.as_chunks::<4>().0.iter();
    std::array::from_fn(|_| words.next().map_or(0, |word| u32::from_be_bytes(*word)))
}

fn summed([mut first, mut second]: [u32; 2], bytes: &[u8], is_big: bool) -> [u32; 2] {
    let word = |word: [u8; 4]| if is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
    for [one, other] in bytes.as_chunks::<4>().0.as_chunks::<2>().0 {
        first = first.wrapping_add(word(*one)).wrapping_add(second);
        second = second.wrapping_add(word(*other)).wrapping_add(first);
    }
    [first, second]
}
