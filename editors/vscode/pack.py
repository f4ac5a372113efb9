"""The extension as a .vsix file, which VS Code installs: a zip archive with two manifests.

python editors/vscode/pack.py [-o slomodel.vsix]
"""

from __future__ import annotations

import argparse
import json
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
FILES = {
    "package.json": FOLDER / "package.json",
    "extension.js": FOLDER / "extension.js",
    "language-configuration.json": FOLDER / "language-configuration.json",
    "README.md": FOLDER / "README.md",
    "LICENSE.txt": ROOT / "LICENSE",
    "slo.tmLanguage.json": ROOT / "grammar" / "slo.tmLanguage.json",
}
_TYPES = {"json": "application/json", "js": "application/javascript", "md": "text/markdown"}
_TYPES |= {"txt": "text/plain", "vsixmanifest": "text/xml"}
_WHEN = (1980, 1, 1, 0, 0, 0)


def content_types() -> str:
    """[Content_Types].xml: the media type of each ending."""
    lines = [f'<Default Extension=".{end}" ContentType="{kind}"/>' for end, kind in _TYPES.items()]
    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{space}">{"".join(lines)}</Types>'
    )


def manifest(package: dict[str, object]) -> str:
    """extension.vsixmanifest: what the extension is, and the editors that it is for."""
    name, publisher = quoteattr(str(package["name"])), quoteattr(str(package["publisher"]))
    version = quoteattr(str(package["version"]))
    engines = package["engines"]
    assert isinstance(engines, dict)
    engine = quoteattr(engines["vscode"])
    space = "http://schemas.microsoft.com/developer/vsx-schema/2011"
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="{space}">
<Metadata>
<Identity Language="en-US" Id={name} Version={version} Publisher={publisher}/>
<DisplayName>{escape(str(package["displayName"]))}</DisplayName>
<Description xml:space="preserve">{escape(str(package["description"]))}</Description>
<Categories>Programming Languages,Formatters</Categories>
<License>extension/LICENSE.txt</License>
<Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/></Properties>
</Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
<Dependencies/>
<Assets>
<Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json"
 Addressable="true"/>
<Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md"
 Addressable="true"/>
</Assets>
</PackageManifest>
"""


def pack(target: Path) -> None:
    """Write the archive; the same files give the same bytes."""
    package = json.loads(FILES["package.json"].read_text(encoding="utf-8"))
    texts = {"[Content_Types].xml": content_types(), "extension.vsixmanifest": manifest(package)}
    texts |= {f"extension/{name}": path.read_text(encoding="utf-8") for name, path in FILES.items()}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(zipfile.ZipInfo(name, _WHEN), text, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "out" / "slomodel.vsix")
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    pack(given.out)
    print(f"wrote {given.out}")
