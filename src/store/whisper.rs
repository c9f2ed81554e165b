//! Whisper files, as carbon writes them: a header and one ring of points for each archive (a resolution and a length).
//!
//! Reads with positioned reads only, so that a file may be read by many at once and while carbon writes it. Writing is
//! meant for demo data and tests: it takes no lock. A header is believed only as far as the file bears it out: reading
//! never allocates more than an archive that is really there. `now` is passed in.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::series::{Step, TimeRange};

/// How the points of a finer archive become one point of a coarser one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RollUp {
    /// Mean of the known points.
    Average,
    /// Sum of the known points.
    Sum,
    /// The last known point.
    Last,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// Mean over all points, unknown ones as 0.
    AvgZero,
    /// The one farthest from 0.
    AbsMax,
    /// The one nearest to 0.
    AbsMin,
}

impl RollUp {
    const ALL: [RollUp; 8] = [
        RollUp::Average,
        RollUp::Sum,
        RollUp::Last,
        RollUp::Max,
        RollUp::Min,
        RollUp::AvgZero,
        RollUp::AbsMax,
        RollUp::AbsMin,
    ];

    /// From its number in a header.
    fn of_code(code: u32) -> Option<Self> {
        Self::ALL.get((code as usize).checked_sub(1)?).copied()
    }

    fn code(self) -> u32 {
        Self::ALL.iter().position(|r| *r == self).map_or(0, |i| i as u32 + 1)
    }

    /// Of points in order of time; NaN is unknown. Some must be known.
    fn apply(self, points: &[f64]) -> f64 {
        let known = || points.iter().copied().filter(|v| !v.is_nan());
        let pick = |better: fn(f64, f64) -> bool| known().reduce(|best, v| if better(v, best) { v } else { best });
        let picked = match self {
            Self::Average => return known().sum::<f64>() / known().count() as f64,
            Self::Sum => return known().sum(),
            Self::AvgZero => return known().sum::<f64>() / points.len() as f64,
            Self::Last => known().next_back(),
            Self::Max => pick(|v, best| v > best),
            Self::Min => pick(|v, best| v < best),
            Self::AbsMax => pick(|v, best| v.abs() > best.abs()),
            Self::AbsMin => pick(|v, best| v.abs() < best.abs()),
        };
        picked.unwrap_or(f64::NAN)
    }
}

/// One resolution of a file: this many points, `step` seconds apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Distance of two points.
    pub step: Step,
    /// Number of points in the ring, at least one.
    pub points: u32,
}

impl Archive {
    /// How far back it reaches, in seconds.
    #[must_use]
    pub fn retention(self) -> i64 {
        self.step.seconds() * i64::from(self.points)
    }
}

/// Consecutive points of one archive.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Time of the first one, seconds since the epoch.
    pub start: i64,
    /// Their distance.
    pub step: Step,
    /// Their values; NaN is absent.
    pub values: Vec<f64>,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WhisperError {
    /// It cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It has no bytes: whoever creates it has not come further yet, or never did.
    #[error("{} is empty", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// It is not a whisper file, or a broken one.
    #[error("{} is not a valid whisper file: {reason}", path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Archives that a file may not have.
    #[error("{}: {reason}", path.display())]
    Archives {
        /// Which file was to be created.
        path: PathBuf,
        /// Which rule they break.
        reason: &'static str,
    },
}

/// Bytes by position: a file, or a file that is made in memory first.
trait Bytes {
    fn size(&self) -> io::Result<u64>;
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

impl Bytes for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }
}

impl Bytes for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let from = offset as usize;
        let bytes = self.get(from..from + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let from = offset as usize;
        let place = self.get_mut(from..from + bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
        place.copy_from_slice(bytes);
        Ok(())
    }
}

const POINT: usize = 12;
const METADATA: usize = 16;
/// Far more than any file has; a header that states more is not one.
const MAX_ARCHIVES: usize = 64;

/// An open whisper file.
#[derive(Debug)]
pub struct WhisperFile {
    path: PathBuf,
    file: File,
    header: Header,
}

#[derive(Clone, Debug)]
struct Header {
    roll_up: RollUp,
    x_files_factor: f32,
    /// How far back the file says it reaches, but never farther than an archive does.
    max_retention: i64,
    /// Each with the position of its ring.
    archives: Vec<(u64, Archive)>,
}

impl WhisperFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// It cannot be read, or its header is none or promises more than the file has.
    pub fn open(path: &Path) -> Result<Self, WhisperError> {
        Self::checked(path, File::open(path))
    }

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// As [`WhisperFile::open`].
    pub fn open_for_update(path: &Path) -> Result<Self, WhisperError> {
        Self::checked(path, OpenOptions::new().read(true).write(true).open(path))
    }

    fn checked(path: &Path, file: io::Result<File>) -> Result<Self, WhisperError> {
        let place = Place(path);
        let file = file.map_err(|e| place.io(e))?;
        let header = Header::read(&file, &place)?;
        Ok(Self { path: path.to_owned(), file, header })
    }

    /// Creates a file with these archives, finest first, that holds these points (seconds since the epoch, value) as
    /// if they had been written at `now`. A file of that name must not exist; its folder must.
    ///
    /// # Errors
    /// Archives that do not fit each other, a factor that is not in 0 to 1, or a file that cannot be written.
    pub fn create(
        path: &Path,
        archives: &[Archive],
        x_files_factor: f32,
        roll_up: RollUp,
        points: &[(i64, f64)],
        now: i64,
    ) -> Result<Self, WhisperError> {
        let place = Place(path);
        let mut image = image(archives, x_files_factor, roll_up).map_err(|reason| place.archives(reason))?;
        let header = Header::read(&image, &place)?;
        update_many(&mut image, &header, points, now).map_err(|e| place.io(e))?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(|e| place.io(e))?;
        file.write_all_at(&image, 0).map_err(|e| place.io(e))?;
        Ok(Self { path: path.to_owned(), file, header })
    }

    /// Writes points (seconds since the epoch, value), each to the finest archive that reaches back to it, and rolls
    /// up to the coarser ones. Points that no archive reaches are dropped; of several in one interval the latest
    /// counts.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn update_many(&mut self, points: &[(i64, f64)], now: i64) -> Result<(), WhisperError> {
        update_many(&mut self.file, &self.header, points, now).map_err(|e| Place(&self.path).io(e))
    }

    /// The points of a range, from the finest archive that reaches back to its start; `None` when the file cannot
    /// have any: the range is in the future, or before all archives. A range that is partly so is cut.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn fetch(&self, range: TimeRange, now: i64) -> Result<Option<Points>, WhisperError> {
        let Some((at, archive, from, until)) = self.header.choose(range, now) else { return Ok(None) };
        let (start, end) = rounded(archive.step, from, until);
        let count = ((end - start) / archive.step.seconds()) as usize;
        let mut values = Vec::with_capacity(count);
        read_ring(&self.file, at, archive, start, count, &mut values).map_err(|e| Place(&self.path).io(e))?;
        Ok(Some(Points { start, step: archive.step, values }))
    }

    /// The archives, finest first.
    pub fn archives(&self) -> impl Iterator<Item = Archive> {
        self.header.archives.iter().map(|(_, archive)| *archive)
    }

    /// How points are rolled up.
    #[must_use]
    pub fn roll_up(&self) -> RollUp {
        self.header.roll_up
    }

    /// How far back the file reaches, in seconds.
    #[must_use]
    pub fn max_retention(&self) -> i64 {
        self.header.max_retention
    }
}

/// A path, to be named in errors.
struct Place<'a>(&'a Path);

impl Place<'_> {
    fn io(&self, source: io::Error) -> WhisperError {
        WhisperError::Io { path: self.0.to_owned(), source }
    }

    fn corrupt(&self, reason: &'static str) -> WhisperError {
        WhisperError::Corrupt { path: self.0.to_owned(), reason }
    }

    fn archives(&self, reason: &'static str) -> WhisperError {
        WhisperError::Archives { path: self.0.to_owned(), reason }
    }
}

impl Header {
    fn read(bytes: &impl Bytes, place: &Place<'_>) -> Result<Self, WhisperError> {
        let size = bytes.size().map_err(|e| place.io(e))?;
        if size == 0 {
            return Err(WhisperError::Empty { path: place.0.to_owned() });
        }
        if size < METADATA as u64 {
            return Err(place.corrupt("it is too short for a header"));
        }
        let mut metadata = [0; METADATA];
        bytes.read_at(&mut metadata, 0).map_err(|e| place.io(e))?;
        let [code, stated_retention, factor, count] = words(&metadata);
        let roll_up = RollUp::of_code(code).ok_or_else(|| place.corrupt("its aggregation method is unknown"))?;
        let x_files_factor = f32::from_bits(factor);
        if !(0.0..=1.0).contains(&x_files_factor) {
            return Err(place.corrupt("its xFilesFactor is not in 0 to 1"));
        }
        let count = count as usize;
        if count == 0 || count > MAX_ARCHIVES {
            return Err(place.corrupt("its number of archives makes no sense"));
        }
        let mut infos = vec![0; POINT * count];
        if size < (METADATA + infos.len()) as u64 {
            return Err(place.corrupt("it ends within its header"));
        }
        bytes.read_at(&mut infos, METADATA as u64).map_err(|e| place.io(e))?;
        let archives = infos.chunks_exact(POINT).map(|info| {
            let [at, step, points] = words(info);
            let step = Step::new(i64::from(step)).ok_or_else(|| place.corrupt("an archive has a step of 0"))?;
            if points == 0 {
                return Err(place.corrupt("an archive has no points"));
            }
            let archive = Archive { step, points };
            let at = u64::from(at);
            if at < (METADATA + POINT * count) as u64 || at + u64::from(points) * POINT as u64 > size {
                return Err(place.corrupt("it does not hold all the points that its header states"));
            }
            Ok((at, archive))
        });
        let archives = archives.collect::<Result<Vec<_>, _>>()?;
        let reach = archives.iter().map(|(_, archive)| archive.retention()).max().unwrap_or(0);
        Ok(Self { roll_up, x_files_factor, max_retention: reach.min(i64::from(stated_retention)), archives })
    }

    /// The archive for a range with its position, and the part of the range that it can answer.
    fn choose(&self, range: TimeRange, now: i64) -> Option<(u64, Archive, i64, i64)> {
        let oldest = now.saturating_sub(self.max_retention);
        // Times in a file have 32 bits.
        if now < 0 || range.from() > i64::from(u32::MAX) || range.from() > now || range.until() < oldest {
            return None;
        }
        let (from, until) = (range.from().max(oldest), range.until().min(now));
        let age = now - from;
        // Some archive reaches back to the oldest time.
        let (at, archive) = self.archives.iter().find(|(_, archive)| archive.retention() >= age)?;
        Some((*at, *archive, from, until))
    }
}

/// Big-endian numbers.
fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words
}

/// Start and end (exclusive) of the points for a range that may be empty: at least one.
fn rounded(step: Step, from: i64, until: i64) -> (i64, i64) {
    let (start, end) = (step.floor(from) + step.seconds(), step.floor(until) + step.seconds());
    (start, if start == end { end + step.seconds() } else { end })
}

/// The time in the first slot of a ring, from which the places of all others follow; 0 when nothing was written yet.
fn base(bytes: &impl Bytes, at: u64) -> io::Result<i64> {
    let mut word = [0; 4];
    bytes.read_at(&mut word, at)?;
    Ok(i64::from(u32::from_be_bytes(word)))
}

/// The slot of a time. (`div_euclid` rounds down as the step is positive.)
fn slot(archive: Archive, base: i64, time: i64) -> u64 {
    (time - base).div_euclid(archive.step.seconds()).rem_euclid(i64::from(archive.points)) as u64
}

/// Appends `count` points from `start` on. A slot holds a point only if its time is the expected one.
fn read_ring(
    bytes: &impl Bytes,
    at: u64,
    archive: Archive,
    start: i64,
    count: usize,
    values: &mut Vec<f64>,
) -> io::Result<()> {
    let base = base(bytes, at)?;
    if base == 0 {
        values.resize(values.len() + count, f64::NAN);
        return Ok(());
    }
    let (mut time, mut left) = (start, count);
    let mut buffer = Vec::new();
    while left > 0 {
        let first = slot(archive, base, time);
        let run = left.min((u64::from(archive.points) - first) as usize);
        buffer.resize(run * POINT, 0);
        bytes.read_at(&mut buffer, at + first * POINT as u64)?;
        for point in buffer.chunks_exact(POINT) {
            let [seconds, high, low] = words(point);
            let value = f64::from_bits(u64::from(high) << 32 | u64::from(low));
            values.push(if i64::from(seconds) == time { value } else { f64::NAN });
            time += archive.step.seconds();
        }
        left -= run;
    }
    Ok(())
}

/// The bytes of a file without points.
fn image(archives: &[Archive], x_files_factor: f32, roll_up: RollUp) -> Result<Vec<u8>, &'static str> {
    if archives.is_empty() || archives.len() > MAX_ARCHIVES {
        return Err("a file must have at least one archive, and not more than 64");
    }
    if archives.iter().any(|a| a.points == 0) {
        return Err("an archive must have points");
    }
    if !(0.0..=1.0).contains(&x_files_factor) {
        return Err("xFilesFactor must be in 0 to 1");
    }
    for pair in archives.windows(2) {
        let (fine, coarse) = (pair[0], pair[1]);
        let (step, coarse_step) = (fine.step.seconds(), coarse.step.seconds());
        if coarse_step <= step || coarse_step % step != 0 {
            return Err("each step must be a multiple of the one before");
        }
        if coarse.retention() <= fine.retention() {
            return Err("each archive must reach farther back than the one before");
        }
        if i64::from(fine.points) < coarse_step / step {
            return Err("an archive must have enough points for one of the next archive");
        }
    }
    let too_large = |_| "the file would be too large";
    let reach = archives.iter().map(|a| a.retention()).max().unwrap_or(0);
    let header = METADATA + POINT * archives.len();
    let mut image = Vec::new();
    let words =
        [roll_up.code(), u32::try_from(reach).map_err(too_large)?, x_files_factor.to_bits(), archives.len() as u32];
    image.extend(words.into_iter().flat_map(u32::to_be_bytes));
    let mut at = header as u64;
    for archive in archives {
        let words = [u32::try_from(at).map_err(too_large)?, archive.step.seconds() as u32, archive.points];
        image.extend(words.into_iter().flat_map(u32::to_be_bytes));
        at += u64::from(archive.points) * POINT as u64;
    }
    image.resize(usize::try_from(at).map_err(too_large)?, 0);
    Ok(image)
}

fn update_many(bytes: &mut impl Bytes, header: &Header, points: &[(i64, f64)], now: i64) -> io::Result<()> {
    // Newest first, as each archive takes what the finer ones do not reach.
    let mut points: Vec<(i64, f64)> = points.to_vec();
    points.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    let mut rest = &points[..];
    for index in 0..header.archives.len() {
        let reach = header.archives[index].1.retention();
        let taken = rest.iter().take_while(|(time, _)| now.saturating_sub(*time) <= reach).count();
        let (mine, older) = rest.split_at(taken);
        rest = older;
        if !mine.is_empty() {
            update_archive(bytes, header, index, mine)?;
        }
    }
    Ok(())
}

/// Writes points, newest first, to one archive and rolls them up.
fn update_archive(bytes: &mut impl Bytes, header: &Header, index: usize, points: &[(i64, f64)]) -> io::Result<()> {
    let (at, archive) = header.archives[index];
    let mut aligned: Vec<(i64, f64)> = Vec::with_capacity(points.len());
    for (time, value) in points.iter().rev() {
        let time = archive.step.floor(*time);
        match aligned.last_mut() {
            Some(last) if last.0 == time => last.1 = *value,
            _ => aligned.push((time, *value)),
        }
    }
    let base = match base(bytes, at)? {
        0 => aligned[0].0,
        base => base,
    };
    let mut run: Vec<u8> = Vec::new();
    let mut run_at = 0;
    for (i, (time, value)) in aligned.iter().enumerate() {
        let slot = slot(archive, base, *time);
        if run.is_empty() {
            run_at = slot;
        }
        let seconds = u32::try_from(*time).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        run.extend(seconds.to_be_bytes());
        run.extend(value.to_bits().to_be_bytes());
        // A run goes on while both time and place do.
        let goes_on = aligned.get(i + 1).is_some_and(|next| next.0 == time + archive.step.seconds());
        if !goes_on || slot + 1 == u64::from(archive.points) {
            bytes.write_at(&run, at + run_at * POINT as u64)?;
            run.clear();
        }
    }
    let mut finer = index;
    for coarser in index + 1..header.archives.len() {
        let step = header.archives[coarser].1.step;
        let mut intervals: Vec<i64> = aligned.iter().map(|(time, _)| step.floor(*time)).collect();
        intervals.dedup();
        let mut any = false;
        for interval in intervals {
            any |= roll_up(bytes, header, finer, coarser, interval)?;
        }
        if !any {
            break;
        }
        finer = coarser;
    }
    Ok(())
}

/// Makes one point of a coarser archive from the finer one, if enough points are known.
fn roll_up(bytes: &mut impl Bytes, header: &Header, finer: usize, coarser: usize, interval: i64) -> io::Result<bool> {
    let ((fine_at, fine), (coarse_at, coarse)) = (header.archives[finer], header.archives[coarser]);
    let count = coarse.step.seconds() / fine.step.seconds();
    if count > i64::from(fine.points) {
        return Ok(false);
    }
    let count = count as usize;
    let mut points = Vec::with_capacity(count);
    read_ring(bytes, fine_at, fine, interval, count, &mut points)?;
    let known = points.iter().filter(|v| !v.is_nan()).count();
    if known == 0 || (known as f64 / points.len() as f64) < f64::from(header.x_files_factor) {
        return Ok(false);
    }
    let base = match base(bytes, coarse_at)? {
        0 => interval,
        base => base,
    };
    let seconds = u32::try_from(interval).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut point = [0; POINT];
    point[..4].copy_from_slice(&seconds.to_be_bytes());
    point[4..].copy_from_slice(&header.roll_up.apply(&points).to_bits().to_be_bytes());
    bytes.write_at(&point, coarse_at + slot(coarse, base, interval) * POINT as u64)?;
    Ok(true)
}
