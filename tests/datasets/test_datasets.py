"""Data sets: formats as published, downloads with checksums, and look-alikes; no network, no real data."""

import gzip
import http.server
import io
import sys
import threading
import zipfile
from contextlib import contextmanager
from functools import partial
from hashlib import sha256

import numpy as np
import pytest

from cloakgp import ArgumentError
from cloakgp.datasets import (
    CITIBIKE_BOX,
    LONDON_BOX,
    Dataset,
    DatasetError,
    fetch_citibike,
    fetch_kung,
    fetch_london_prices,
    make_bike_like,
    make_city_like,
    make_kung_like,
    published,
)

# ------------------------------------------------------------------------------- made-up files

HOWELL = '"height";"weight";"age";"male"\n150.5;40.1;30;0\n160.25;50;31;1\n90;12;3.5;0\n'

LOWER = (
    '"tripduration","starttime","stoptime","start station id","start station name","start station latitude",'
    '"start station longitude","end station id","end station name","end station latitude",'
    '"end station longitude","bikeid","usertype","birth year","gender"'
)
UPPER = (
    "Trip Duration,Start Time,Stop Time,Start Station ID,Start Station Name,Start Station Latitude,"
    "Start Station Longitude,End Station ID,End Station Name,End Station Latitude,End Station Longitude,"
    "Bike ID,User Type,Birth Year,Gender"
)
PREPARED_TRIPS = (
    "start_lat,start_lon,end_lat,end_lon,tripduration,start_ts,in_paper_box\n"
    "40.7,-73.99,40.71,-73.98,300,2016-06-03 00:00:02,True\n"
    "40.66,-73.99,40.71,-73.98,400,2016-06-03 00:00:03,False\n"
)
PREPARED_SALES = (
    "easting,northing,lat,lon,price,date,type\n"
    "530000,180000,51.5,-0.1,250000,2016-01-07,T\n"
    "531000,181000,51.5,-0.1,350000,2014-02-07,F\n"
    "700000,181000,51.5,-0.1,450000,2014-02-07,F\n"
)


def trip(seconds, time, start=(40.70, -73.99), end=(40.72, -73.98)):
    cells = [seconds, time, time, 72, "W 52 St, 11 Ave", *start, 79, "Franklin St", *end, 1, "", 1980, 1]
    return ",".join(f'"{cell}"' for cell in cells)


def lines(*rows):
    return "".join(f"{row}\r\n" for row in rows)


def sale(price, date, postcode):
    cells = ["{AA-1}", price, f"{date} 00:00", postcode, *"TNF1", "", "A ROAD", "", *"BCDAA"]
    return ",".join(f'"{cell}"' for cell in cells)


def postcode(name, easting, northing):
    return f'"{name}",10,{easting},{northing},"E92000001","E19","E18","","E09","E05"'


def packed(members, kind=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """No user's data or cache, and no address but this machine's."""
    monkeypatch.delenv("CLOAKGP_DATA", raising=False)
    monkeypatch.setenv("CLOAKGP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "*")
    served_from(monkeypatch, "http://127.0.0.1:9/")  # the discard port


def served_from(monkeypatch, address):
    """As if all publishers were there."""
    names = {"KUNG": "Howell1.csv", "TRIPS": "{year}-citibike-tripdata.zip", "PRICES": "pp-{year}.csv"}
    for publisher, name in (names | {"POSTCODES": "codepo_gb.zip?area=GB"}).items():
        monkeypatch.setattr(published, f"{publisher}_URL", address + name)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "data"
    place.mkdir()
    return place


# ----------------------------------------------------------------------------------------- !Kung


@pytest.mark.parametrize(
    "content",
    [
        HOWELL.encode(),
        b"\xef\xbb\xbf" + HOWELL.replace("\n", "\r\n").encode(),
        HOWELL.replace(";", ",").encode(),
        gzip.compress(HOWELL.encode()),
        packed({"Howell1.csv": HOWELL, "__MACOSX/._Howell1.csv": b"\0"}),
    ],
    ids=["semicolons", "BOM and CRLF", "commas", "gz", "zip"],
)
def test_kung_are_the_women_of_the_file(folder, content):
    file = folder / "any name"
    file.write_bytes(content)
    data = fetch_kung(file)
    assert data.X.tolist() == [[30.0], [3.5]]
    assert data.y.tolist() == [150.5, 90.0]
    assert (data.names, data.units, data.generated) == (("age", "height"), ("years", "cm"), False)
    assert "rethinking" in data.licence


def test_a_folder_by_argument_or_environment(folder, monkeypatch):
    (folder / "howell1.csv").write_text(HOWELL)
    assert len(fetch_kung(str(folder)).y) == 2
    monkeypatch.setenv("CLOAKGP_DATA", str(folder))
    assert len(fetch_kung().y) == 2
    with pytest.raises(FileNotFoundError, match=r"holds none of 201606-citibike.*citibike\.csv\.gz"):
        fetch_citibike()  # where a folder is given, nothing is downloaded
    with pytest.raises(FileNotFoundError, match=r"london_prices\.csv.*pp-2013\.csv"):
        fetch_london_prices()
    monkeypatch.setenv("CLOAKGP_DATA", str(folder / "none"))
    with pytest.raises(FileNotFoundError, match="CLOAKGP_DATA must name a file or folder that exists"):
        fetch_kung()
    with pytest.raises(FileNotFoundError, match="path must name"):
        fetch_kung("none")


# ------------------------------------------------------------------------------------ Citi Bike


@pytest.mark.parametrize(
    ("header", "time"),
    [(LOWER, "6/1/2016 00:00:18"), (UPPER, "2016-06-01 00:00:18"), (LOWER, "6/30/2016 0:01")],
)
def test_trips_under_either_header_and_date(folder, header, time):
    (folder / "201606-citibike-tripdata.csv").write_text(lines(header, trip(300, time), trip(70, time)))
    data = fetch_citibike("2016-06", folder)
    assert data.X.tolist() == [[40.70, -73.99, 40.72, -73.98]] * 2
    assert data.y.tolist() == [300.0, 70.0]
    assert data.names[-1] == "duration"
    assert data.units == ("degrees",) * 4 + ("s",)
    assert "2016-06" in data.source


JUNE = "6/1/2016 00:00:18"
PARTS = {
    "2016-citibike-tripdata/6_June/201606-citibike-tripdata_2.csv": lines(LOWER, trip(2, JUNE)),
    "2016-citibike-tripdata/6_June/201606-citibike-tripdata_1.csv": lines(LOWER, trip(1, JUNE)),
    "2016-citibike-tripdata/5_May/201605-citibike-tripdata_1.csv": "never\0read",
    "2016-citibike-tripdata/6_June/JC-201606-citibike-tripdata.csv": "another city",
    "__MACOSX/2016-citibike-tripdata/6_June/._201606-citibike-tripdata_1.csv": "\0",
    "2016-citibike-tripdata/6_June/": "",
}


@pytest.mark.parametrize(
    "members",
    [
        PARTS,
        {
            **dict.fromkeys(list(PARTS)[:2], lines(LOWER, trip(9, JUNE))),
            "201606-citibike-tripdata.csv": lines(LOWER, trip(1, JUNE), trip(2, JUNE)),
        },
        {
            "2016-citibike-tripdata/201606-citibike-tripdata.zip": packed(
                {name.rpartition("/")[2]: PARTS[name] for name in list(PARTS)[:3]}
            ),
            "2016-citibike-tripdata/201607-citibike-tripdata.zip": b"never read",
        },
        {"2016-06 - Citi Bike trip data.csv": lines(LOWER, trip(1, JUNE), trip(2, JUNE))},
    ],
    ids=["parts in a folder", "whole and parts", "zip in zip", "old name"],
)
def test_a_month_is_streamed_out_of_its_years_archive(folder, members):
    (folder / "2016-citibike-tripdata.zip").write_bytes(packed(members))
    assert fetch_citibike("2016-06", folder).y.tolist() == [1.0, 2.0]
    assert [entry.name for entry in folder.iterdir()] == ["2016-citibike-tripdata.zip"]


def test_other_months_gaps_and_places_outside_are_left_out(folder):
    (folder / "citibike.csv.gz").write_bytes(gzip.compress(PREPARED_TRIPS.encode()))
    assert fetch_citibike("2016-06", folder).X.shape == (2, 4)
    assert fetch_citibike("2016-06", folder, box=CITIBIKE_BOX).y.tolist() == [300.0]
    with pytest.raises(DatasetError, match="no trip of 2017-06"):
        fetch_citibike("2017-06", folder)
    gaps = [trip(2, JUNE, start=("", "")), trip(3, JUNE, end=("NULL", "NULL")), trip(4, JUNE, end=(0.0, 0.0))]
    others = [trip(5, "7/1/2016 00:00:00"), trip(6, ""), ""]
    (folder / "citibike.csv").write_text(lines(LOWER, trip(1, JUNE), *gaps, *others))
    assert fetch_citibike("2016-06", folder).y.tolist() == [1.0]


# --------------------------------------------------------------------------------------- London

SALES = {
    2013: lines(
        sale(100, "2013-01-02", "SW1A 1AA"), sale(200, "2013-01-03", ""), sale(300, "2013-05-06", "ZZ1 1ZZ")
    ),
    2014: lines(sale(400, "2014-01-02", "N1 1AA"), sale(500, "2014-01-03", "AB1 1AA")),
}
POSTCODES = packed(
    {
        "Data/CSV/sw.csv": lines(postcode("SW1A1AA", 529_090, 179_645), postcode("SW1A9ZZ", 0, 0)),
        "Data/CSV/n.csv": lines(postcode("N1  1AA", 531_000, 184_000)),
        "Data/CSV/ab.csv": lines(postcode("AB1 1AA", 500_000, 806_000)),
        "Doc/Code-Point_Open_Column_Headers.csv": "PC,PQ\r\n",
        "Doc/licence.txt": "",
    }
)


def write_sales(folder):
    (folder / "pp-2013.csv").write_text(SALES[2013])
    (folder / "pp-2014.csv.gz").write_bytes(gzip.compress(SALES[2014].encode()))
    (folder / "codepo_gb.zip").write_bytes(POSTCODES)


def test_sales_are_joined_to_their_postcodes(folder):
    write_sales(folder)
    data = fetch_london_prices([2013, 2014], folder, box=LONDON_BOX)
    assert data.X.tolist() == [[529_090, 179_645], [531_000, 184_000]]
    assert data.y.tolist() == [100.0, 400.0]
    assert data.units == ("m", "m", "pounds")
    assert "pp-2013.csv, pp-2014.csv.gz and codepo_gb.zip" in data.source
    assert "Open Government Licence v3.0" in data.licence
    assert "Royal Mail" in data.licence
    everywhere = fetch_london_prices([2014], folder, box=((0, 700_000), (0, 1_300_000)))
    assert everywhere.y.tolist() == [400.0, 500.0]


def test_prepared_sales_are_kept_by_year_and_place(folder):
    (folder / "london_prices.csv.gz").write_bytes(gzip.compress(PREPARED_SALES.encode()))
    data = fetch_london_prices(path=folder)
    assert data.X.tolist() == [[530_000, 180_000], [531_000, 181_000]]
    ends = ((530_000, 531_000), (181_000, 182_000))  # which are inside
    one = fetch_london_prices([2014], folder / "london_prices.csv.gz", box=ends)
    assert one.y.tolist() == [350_000.0]
    with pytest.raises(DatasetError, match="no sale of 2013"):
        fetch_london_prices([2013], folder)


# ----------------------------------------------------------------------------------- what is wrong

POSTCODES_OF_LETTERS = packed({"Data/CSV/ab.csv": "AB1 1AA,10,x,806000,,,,,,\n"})
WRONG = [
    *(
        (fetch_kung, "Howell1.csv", content, message)
        for content, message in (
            ("height;age\n1;2\n", "no column 'male'; its columns are height, age"),
            ("", "no column 'age'"),
            ("height;age;male\n150;NA;0\n", r"row 2: expected numbers, got \('NA', '150', '0'\)"),
            ("height;age;male\n150;nan;0\n", "not finite"),
            ("height;age;male\n150;20\n", "row 2: cannot be read"),
            ("height;age;male\n150;20;1\n", "holds no women"),
            (b"\xff\xfe\x00binary", "damaged, or no CSV text"),
            (b"a" * 70_000, "first line never ends"),
            (gzip.compress(HOWELL.encode())[:-12], "damaged, or no CSV text"),
            (b"PK\x03\x04 no archive", "damaged zip archive"),
            (packed({"a.csv": HOWELL, "b.csv": HOWELL}), "does not hold .* but a.csv, b.csv"),
        )
    ),
    *(
        (fetch_citibike, name, content, message)
        for name, content, message in (
            ("citibike.csv", lines(LOWER, trip("slow", JUNE)), r"row 2: expected numbers, got .*'slow'"),
            ("citibike.csv", lines(LOWER, trip(1, "1/2")), "row 2: cannot be read"),
            ("citibike.csv", "ride_id,started_at,start_lat\n", "no column 'start station longitude'"),
            (
                "201606-citibike-tripdata.zip",
                packed({"201605-a.csv": "x"}),
                "does not hold what is asked for",
            ),
        )
    ),
    (fetch_london_prices, "pp-2013.csv", "price,date\n1,2\n", r"pp-2013\.csv, row 1: expected 16 columns"),
    (fetch_london_prices, "codepo_gb.zip", POSTCODES_OF_LETTERS, "row 1: expected 10 columns of Code-Point"),
]


@pytest.mark.parametrize(("fetch", "name", "content", "message"), WRONG, ids=[case[-1] for case in WRONG])
def test_wrong_files_are_named_with_what_is_wrong(folder, fetch, name, content, message):
    write_sales(folder)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DatasetError, match=message):
        fetch(**({"years": [2013]} if fetch is fetch_london_prices else {}), path=folder)


BOXES = [3, (1, 2), ((1, 2),), ((2, 1), (1, 2)), (("a", 1), (1, 2))]


@pytest.mark.parametrize(
    ("fetch", "argument", "bad"),
    [
        *(
            (fetch_citibike, "month", bad)
            for bad in ("June", "2016-13", "201606", "2012-01", "2021-02", 201606)
        ),
        *((fetch_london_prices, "years", bad) for bad in ([], 2013, ["then"], [1994])),
        *((fetch, "box", bad) for fetch in (fetch_citibike, fetch_london_prices) for bad in BOXES),
    ],
)
def test_arguments_are_checked(fetch, argument, bad):
    with pytest.raises(ArgumentError) as caught:
        fetch(**{argument: bad})
    assert caught.value.name == argument


# ------------------------------------------------------------------------------------ downloads


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextmanager
def serving(folder):
    """The folder over HTTP on this machine."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def cache(tmp_path):
    pytest.importorskip("pooch")
    return tmp_path / "cache"


def test_a_known_checksum_is_checked_and_a_download_kept(folder, monkeypatch, cache):
    (folder / "Howell1.csv").write_text(HOWELL)
    with serving(folder) as address:
        served_from(monkeypatch, address)
        with pytest.raises(DatasetError, match=f"has not the sha256 known, {published.KUNG_SHA256}"):
            fetch_kung()
        assert not (cache / "Howell1.csv").exists()
        monkeypatch.setattr(published, "KUNG_SHA256", sha256(HOWELL.encode()).hexdigest())
        assert len(fetch_kung().y) == 2
        with pytest.raises(ConnectionError, match=r"pp-2015\.csv could not be had: 404 .* may have moved"):
            fetch_london_prices([2015])
    assert len(fetch_kung().y) == 2  # without the server
    (cache / "Howell1.csv").write_text("changed")
    with pytest.raises(ConnectionError):  # to download it again
        fetch_kung()


def test_no_network_is_said_with_what_to_do(cache):
    with pytest.raises(ConnectionError, match=r"could not be had: .* Give Howell1\.csv as path"):
        fetch_kung()
    assert not list(cache.glob("*"))


def test_pooch_is_needed_for_downloads_alone(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    (folder / "Howell1.csv").write_text(HOWELL)
    assert len(fetch_kung(folder).y) == 2
    with pytest.raises(ImportError, match=r"cloakgp\[datasets\]"):
        fetch_kung()


# ---------------------------------------------------------------------------------- look-alikes


@pytest.mark.parametrize("make", [make_kung_like, make_city_like, make_bike_like])
def test_look_alikes_have_a_public_seed_and_say_that_they_are_generated(make):
    data = make(50)
    assert isinstance(data, Dataset)
    assert data.generated
    assert data.X.shape == (50, len(data.names) - 1)
    assert len(data.y) == 50
    assert all(np.array_equal(a, b) for a, b in zip(data, make(50, seed=0), strict=True))
    assert not np.array_equal(make(50, seed=1).y, data.y)
    with pytest.raises(ArgumentError):
        make(0)
