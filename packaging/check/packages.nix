# The packages of the flake in this folder, with stand-ins for what it uses of nixpkgs.
let
  pkgs = system: {
    fetchurl = given: given;
    stdenv = {
      mkDerivation = given: given;
      hostPlatform.isLinux = builtins.match ".*-linux" system != null;
      cc.cc.lib = "libgcc";
    };
    installShellFiles = "installShellFiles";
    autoPatchelfHook = "autoPatchelfHook";
    lib = {
      optional = condition: one: if condition then [ one ] else [ ];
      getLicenseFromSpdxId = id: id;
      sourceTypes.binaryNativeCode = "binaryNativeCode";
    };
  };
  systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
  legacyPackages = builtins.listToAttrs (map (name: { inherit name; value = pkgs name; }) systems);
in
builtins.mapAttrs (_: packages: packages.default)
  ((import ./flake.nix).outputs { self = { }; nixpkgs = { inherit legacyPackages; }; }).packages
