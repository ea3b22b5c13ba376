using System;
namespace App.Shelf; // DEF namespace App.Shelf
[Serializable]
public sealed partial class Shelf<T> : Base<T>, IShelf where T : class, new() // DEF class Shelf
{
    public int Size { get; private set; } = 3;
    public string Path => @"C:\{";
    public Shelf(int size) : base(size) { } // DEF method Shelf
    public async Task<int> LoadAsync<K>(K key, string name = "a") where K : struct // DEF method LoadAsync
    {
        if (key != null) { return await Call(key); }
        return 0;
    }
    public override string ToString() => $"{Size}"; // DEF method ToString
    private enum Kind { One, Two } // DEF enum Kind
    public record Point(int X, int Y); // DEF record Point
    public interface INamed // DEF interface INamed
    {
        string Name(int x); // DEF method Name
    }
}
