/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 38: the line in the middle, 20 columns on each side. */
BEGIN
{
	@ = quantize(4, 10);
	@ = quantize(8, -30);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
               2                     |                     0        
               4                     |@@@@@                10       
               8      @@@@@@@@@@@@@@@|                     -30      
              16                     |                     0        

*/
