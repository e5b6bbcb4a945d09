/* SPDX-License-Identifier: Apache-2.0 */
/* speculate() with nothing behind it, or with what was left out, speculates a row without data. */
/* flags: -x nspec=2 */
/* processor: 0 */
int fired;
BEGIN
{
	kept = speculation();
	dropped = speculation();
}
BEGIN
{
	speculate(kept);
}
BEGIN
{
	speculate(kept);
	fired++;
	if (fired == 0) {
		trace("never");
	}
}
BEGIN
/fired == 0/
{
	speculate(kept);
}
BEGIN
{
	if (fired == 0) {
		speculate(kept);
	}
}
BEGIN
{
	speculate(dropped);
}
BEGIN
{
	speculate(0);
}
BEGIN
{
	discard(dropped);
}
BEGIN
{
	commit(kept);
}
BEGIN
{
	exit(fired - 1);
}
/* output:
CPU     ID                    FUNCTION:NAME
  0      1                           :BEGIN 
  0      1                           :BEGIN 
  0      1                           :BEGIN 

*/
